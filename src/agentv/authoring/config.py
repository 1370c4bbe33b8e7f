"""A project's defaults and environment: `.agentv/config.yaml`, `config.local.yaml`, and `.env` files (SPEC section 2).

Keys of `config.local.yaml` override those of `config.yaml`. Of AgentV's format, `execution`, `defaults`, `file://` and
keys without an effect are accepted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from agentv.authoring.fields import translation
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredRepeat, AuthoredRun, AuthoredTrials, Unread
from agentv.authoring.fields.spellings import RUN
from agentv.authoring.source.files import is_file, shown, upwards
from agentv.authoring.source.nodes import Canonical, MapNode, Node, Place, Scalar, holds_placeholder
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_shared
from agentv.authoring.targets.suite_targets import one_default, places_of, referenced
from agentv.model.suite.suite import DEFAULT_RETRY, Aggregate, RunSettings
from agentv.model.values.values import Span, lazy_pattern
from agentv.ports import Reader
from agentv.registry.extensions import CONFIG_KEYS, HOW_TO_GET, PORTS, lacking, missing
from agentv.registry.fields import Alias, Declared, Doc, Fraction, Nonempty, Text
from agentv.user_code.plugins import added, added_value


class AuthoredConfig(Declared, Struct, frozen=True):
    """The outermost mapping of a config file."""

    target: Annotated[Text | None, Doc("the default target, if no flag, case or suite sets one")] = None
    judge: Annotated[Text | None, Doc("the default judge, if nothing else sets one")] = None
    threshold: Annotated[Fraction | None, Doc("minimum score of a case to pass, 0..1")] = None
    run: Annotated[Unread, Doc("how suites run")] = None
    providers: Annotated[
        Unread, Alias(("targets",)), Doc("targets, as in `targets.yaml`, or a `file://` with them")
    ] = None
    prompts_dir: Annotated[
        Text | None, Nonempty(), Doc("the prompt library, relative to the directory that contains `.agentv`")
    ] = None
    eval_patterns: Annotated[
        tuple[Text, ...] | None,
        Nonempty(),
        Doc("eval files of `eval` and `validate` without a path, relative to the directory that contains `.agentv`"),
    ] = None
    results: Annotated[Unread, Doc("the team's server that runs are pushed to")] = None


class Config(Struct, frozen=True):
    """A project's defaults; None if not set.

    Attributes:
        prompts_dir: absolute path of the prompt library, which may not exist.
        eval_patterns: as authored, relative to the directory that contains `.agentv`.
        providers: node of the configuration's targets, with its context.
        results: node of the server that `push` sends runs to, with its context, for each file that has one.
        path: path of the first config file, or None if none exists.
        nodes: node of each value, by key.
    """

    target: str | None = None
    judge: str | None = None
    threshold: float | None = None
    run: RunSettings = field(default=RunSettings())
    prompts_dir: str | None = None
    eval_patterns: tuple[str, ...] | None = None
    providers: tuple[Node, Reading] | None = None
    results: tuple[tuple[Node, Reading], ...] = ()
    path: str | None = None
    nodes: Mapping[str, Node] = field(default_factory=dict)


_AGENTV_KEYS = ExtraKeys(hinted=("defaults", "execution"))
_FILES = (("config.yaml", "config.yml"), ("config.local.yaml", "config.local.yml"))


def read_config(directory: str, reading: Reading) -> Config:
    """The defaults for a directory, from the closest `.agentv` with a config file."""
    for parent in upwards(directory, reading.places.root):
        folder = os.path.join(parent, ".agentv")  # noqa: PTH118  # called for every suite
        present = [path for names in _FILES if (path := _one_of(folder, names, reading))]
        if present:
            home = replace(reading, places=places_of(parent, reading))
            configs = [_read(path, home) for path in present]
            merged = Config()
            for one in configs:
                values = {name: value for name, value in asdict(one).items() if value is not None}
                values |= {"run": over(one.run, merged.run), "path": merged.path or one.path}
                values |= {"results": (*merged.results, *one.results), "nodes": {**merged.nodes, **one.nodes}}
                merged = replace(merged, **values)
            return merged
    return Config()


def _one_of(folder: str, names: tuple[str, ...], reading: Reading) -> str | None:
    """Path of the first file that exists, or None. Reports an error if there are two different files."""
    found = [path for name in names if is_file(path := os.path.join(folder, name))]  # noqa: PTH118
    for other in found[1:]:
        if not os.path.samefile(found[0], other):  # noqa: PTH121
            message = f"{shown(found[0])} and {shown(other)} both exist"
            at = Scalar(other, other, Span.start_of(other))
            reading.report.error("ambiguous-config", at, message, hint="keep one of them")
    return found[0] if found else None


def _read(path: str, reading: Reading) -> Config:
    text = reading.text_of(path, Scalar(path, shown(path), Span.start_of(path)))
    root = read_shared(path, text, reading.report) if text is not None else None
    if root is None or (isinstance(root, Scalar) and root.value is None):
        return Config()
    if not isinstance(root, MapNode):
        reading.report.unfit(root, "a config file must be a mapping")
        return Config()
    reading = reading.rendering(holds_placeholder(root))
    root = canonical_config(root, reading)
    shape = shape_of(AuthoredConfig)
    of_plugins = added(CONFIG_KEYS).keys() - shape.rules.keys()
    own = {key: node for key, node in root.items.items() if key not in of_plugins}
    read: AuthoredConfig = shape.read(own, root, reading, "a config file", extra=_AGENTV_KEYS)
    run = read_run(read.run, reading) if read.run is not None else RunSettings()
    prompts_dir = read.prompts_dir
    if prompts_dir is not None:  # may be outside the repository, for shared libraries
        prompts_dir = os.path.expanduser(prompts_dir.strip())  # noqa: PTH111  # Path raises for an unknown ~user
        prompts_dir = os.path.normpath(Path(reading.places.suite) / prompts_dir)
    providers = None if read.providers is None else (read.providers, reading.rendering(True))
    results = () if read.results is None else ((read.results, reading.rendering(True)),)
    for key in (*added(CONFIG_KEYS), *missing(CONFIG_KEYS)):
        if (node := root.items.get(key)) is None:
            continue
        if needs := lacking(CONFIG_KEYS, key):
            reading.report.error("missing-extra", node, f"'{key}' {needs}", hint=HOW_TO_GET)
        else:
            added_value(CONFIG_KEYS, key)(node, reading)
    return Config(
        read.target,
        read.judge,
        read.threshold,
        run,
        prompts_dir,
        read.eval_patterns,
        providers,
        results,
        path,
        dict(root.items),
    )


def read_run(node: Node, reading: Reading) -> RunSettings:
    """Read a `run:` block; mistakes are reported."""
    if isinstance(node, Scalar) and node.value is None:
        return RunSettings()
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'run' must be a mapping")
        return RunSettings()
    name = reading.report.spelled(node, "run")
    items = dict(node.items)
    trials = read_trials(items, reading)
    if trials is not None:
        del items["repeat"]
    read = shape_of(AuthoredRun).decode(items, node, reading, f"'{name}'")
    if read is INVALID or trials is INVALID:
        return RunSettings()
    retry = None if read.retry is None else read.retry.over(DEFAULT_RETRY)
    if read.min_pass_rate is not None and read.gate is None:
        at = node.items["min_pass_rate"]
        reading.report.error("missing-key", at, "'min_pass_rate' requires 'gate: corrected'")
    if read.gate is not None and (needs := lacking(PORTS, "LabelledRuns")):
        reading.report.error("missing-extra", node.items["gate"], f"'gate' {needs}", hint=HOW_TO_GET)
    early = read.repeat if isinstance(read.repeat, AuthoredRepeat) else None
    own = {name: getattr(read, name) for name in RunSettings.__struct_fields__ if hasattr(read, name)}
    own |= {"retry": retry, "repeat": read.repeat if early is None else early.max}
    if early is not None:
        own |= {"until": early.until, "alpha": early.alpha}
    if trials is not None:
        own |= trials
    return RunSettings(**own)


def over(first: RunSettings, second: RunSettings) -> RunSettings:
    """The first settings, with those that are not set taken from the second."""
    if first.repeat is not None:  # overrides all settings of samples together
        second = replace(second, until=None, alpha=None, cost_limit_usd=None)
    values = asdict(first)
    return replace(second, **{name: value for name, value in values.items() if value is not None})


_KEYS = frozenset(shape_of(AuthoredTrials).rules)
_AGGREGATES: Mapping[str, Aggregate] = {
    "pass_at_k": "pass_any",
    "pass_any": "pass_any",
    "pass_all": "pass_all",
    "mean": "mean",
    "confidence_interval": "mean",
}
"""AgentV's strategy → our aggregate."""


def read_trials(run: Mapping[str, Node], reading: Reading) -> Any:
    """The settings from AgentV's `trials` in a `run:` block; None if `repeat` has another form, INVALID if it is wrong.

    Args:
        run: the block, by canonical keys.
        reading: context of the suite.
    """
    node = run.get("repeat")
    if not isinstance(node, MapNode) or node.items.keys().isdisjoint(_KEYS):
        return None
    name = reading.report.spelled(node, "repeat")
    read = shape_of(AuthoredTrials).decode(node.items, node, reading, f"'{name}'")
    if read is INVALID:
        return INVALID
    if "aggregate" in run and "strategy" in node.items:
        message = "'strategy' is another spelling of 'aggregate', which is set too; keep one of them"
        reading.report.error("two-spellings", node.keys["strategy"], message)
        return INVALID
    report = reading.report
    if read.strategy == "confidence_interval":
        message = "the mean of the samples decides, not the lower end of its confidence interval"
        report.warning("not-applied", node.items["strategy"], message, hint="write 'aggregate: mean' or 'pass_all'")
    if read.early_exit:
        message = "'early_exit' is not applied: all samples of a case run, with the same verdict"
        report.remark("not-applied", node.keys["early_exit"], message)
    found = {"repeat": read.count, "cost_limit_usd": read.cost_limit_usd}
    return found if "aggregate" in run else found | {"aggregate": _AGGREGATES[read.strategy]}


NO_EFFECT = frozenset(
    {"dashboard", "projects", "results", "results_by_project", "studio"}
    | {"env_from", "env_path", "git_cache", "hooks", "refs", "required_version"}
    | {"$schema", "guideline_patterns", "tags", "tests"}
)
"""Keys of a config file that only AgentV's own program uses."""

NO_EFFECT_IN_EXECUTION = frozenset(
    {"export_otel", "otel_backend", "otel_capture_content", "otel_file", "otel_group_turns", "trace_file", "verbose"}
    | {"keep_workspaces", "pool_slots", "pool_workspaces", "workspace_path"}
)

_DEFAULTS = {"target": "target", "provider": "target", "judge": "judge", "grader": "judge"}
_RUN = RUN.canonical | RUN.older.keys()


def _is_server(results: Node) -> bool:
    """Whether `results` names a server that runs are pushed to. In AgentV's format, it names a repository."""
    return isinstance(results, MapNode) and not {"remote", "token"}.isdisjoint(results.items)


def canonical_config(root: MapNode, reading: Reading) -> MapNode:
    """Translate a config file to canonical keys. Keys without an effect are reported in one hint."""
    report = reading.report
    spelled: dict[str, str] = {}
    made = Canonical({}, {}, root.at, spelled)
    defaults: dict[str, list[Scalar]] = {"target": [], "judge": []}
    for outer, holder, key, node in _values(root, reading, made.no_effect):
        role, at = _DEFAULTS.get(key), holder.keys[key]
        known = (*_DEFAULTS, *(("threshold", *_RUN) if outer == "execution" else ()))
        if role is not None and isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
            defaults[role].append(node)
            made.keys.setdefault(role, at)
        elif role is not None and outer:
            report.unfit(node, f"'{key}' must be the name of a target")
        elif not outer:
            made.items[key], made.keys[key] = node, at
        elif key in known:
            name = f"run.{key}" if key in _RUN else "execution.threshold"
            made.items[name], made.keys[name], spelled[name] = node, at, f"{outer}.{key}"
        elif not key.startswith("x-"):
            reading.unknown_key(key, holder, known, f"'{outer}'")
    for role, given in defaults.items():
        found = one_default(role, given, None, reading)
        if found is not None:
            made.items[role] = found
    _move_settings(made, reading)
    report.remark_on_keys(made.no_effect)
    return made


def _move_settings(made: Canonical, reading: Reading) -> None:
    """Move settings of `execution` to `threshold` and `run`."""
    threshold = made.items.pop("execution.threshold", None)
    if threshold is not None:
        if "threshold" in made.items:
            message = "'execution.threshold' and 'threshold' mean the same; keep one of them"
            reading.report.error("two-spellings", made.keys["execution.threshold"], message)
        made.items["threshold"], made.keys["threshold"] = threshold, made.keys["execution.threshold"]
    translation.gathered(made, "run", reading)
    run = made.items.get("run")
    if isinstance(run, MapNode):
        made.items["run"] = translation.run_block(run, reading)


def _values(root: MapNode, reading: Reading, ignored: dict[str, Place]) -> Iterator[tuple[str, MapNode, str, Node]]:
    """The values of a config file: outer key ("", `execution` or `defaults`), mapping that holds the key, key, value.

    Keys without an effect are added to `ignored` instead.
    """
    for key, written in root.items.items():
        if key in NO_EFFECT and not (key == "results" and _is_server(written)):
            ignored[key] = root.keys[key]
            continue
        node = written if key in {"providers", "targets"} else referenced(written, reading)
        if key in {"execution", "defaults"} and isinstance(node, MapNode):
            for inner, value in node.items.items():
                if key == "execution" and inner in NO_EFFECT_IN_EXECUTION:
                    ignored[f"execution.{inner}"] = node.keys[inner]
                else:
                    yield key, node, inner, value
        elif node is not None and key not in {"execution", "defaults"}:
            yield "", root, key, node
        elif node is not None and not (isinstance(node, Scalar) and node.value is None):
            reading.report.unfit(node, f"'{key}' must be a mapping")


_ENTRY = lazy_pattern(
    r"""
    [ \t]* (?:export[ \t]+)? (?P<name>[A-Za-z_][A-Za-z0-9_.-]*) [ \t]*=[ \t]*
    (?: '(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | (?P<bare>[^\n]*?) )
    [ \t]* (?:(?<=[ \t])\#[^\n]*)? $
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
"""`NAME=value`. A quoted value may span lines, as private keys and certificates do."""

_BLANK_OR_COMMENT = lazy_pattern(r"[ \t]*(?:\#[^\n]*)?$", re.MULTILINE)
_ESCAPES = {r"\n": "\n", r"\r": "\r", r"\t": "\t", r"\"": '"', r"\\": "\\", r"\$": "$"}
_ESCAPE = lazy_pattern("|".join(re.escape(one) for one in _ESCAPES))


def dotenv_of(directory: str, root: str, reader: Reader, report: Report) -> dict[str, str]:
    """Variables of the `.env` files from a directory up to the root; the closest file takes precedence."""
    found: dict[str, str] = {}
    for parent in upwards(directory, root):
        path = os.path.join(parent, ".env")  # noqa: PTH118  # called for every parent of every suite
        if is_file(path):
            found = {**read_dotenv(path, reader, report), **found}
    return found


def read_dotenv(path: str, reader: Reader, report: Report) -> dict[str, str]:
    """The variables of one `.env` file: `NAME=value` lines with quotes, comments and `export`."""
    try:
        text = reader.read(path).decode("utf-8-sig")
    except OSError as error:
        report.unreadable(path, error)
        return {}
    except UnicodeDecodeError as error:
        report.error("not-utf-8", Span.start_of(path), f"not UTF-8 (byte {error.start + 1} of the file)")
        return {}
    return _variables(path, text.replace("\r\n", "\n").replace("\r", "\n"), report)


def _variables(path: str, text: str, report: Report) -> dict[str, str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        entry = _ENTRY.match(text, place)
        newline = text.find("\n", place)
        end = entry.end() if entry else newline if newline >= 0 else len(text)
        if entry:
            found[entry["name"]] = _value(entry)
        elif not _BLANK_OR_COMMENT.match(text, place):
            line = text.count("\n", 0, place) + 1
            # only a warning: other programs read this file too, and may accept the line
            report.warning("bad-dotenv", Span(path, line, 1, line, 2), "this line is not NAME=value; ignored")
        place = end + 1
    return found


def _value(entry: re.Match[str]) -> str:
    if entry["single"] is not None:
        return entry["single"]
    if entry["double"] is not None:
        return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], entry["double"])
    return entry["bare"]


def merged(process: Mapping[str, str], suite: Mapping[str, str], dotenv: Mapping[str, str]) -> dict[str, str]:
    """The merged environment: the process overrides the suite's `env:`, which overrides `.env` (SPEC section 2)."""
    return {**dotenv, **suite, **process}
