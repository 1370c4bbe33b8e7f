"""One target: what every target says, and its provider's own settings (SPEC section 12)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs
from msgspec.structs import replace

from agentv.authoring.code.fingerprints import commands_of, digest_of, files_behind, is_unfollowed
from agentv.authoring.fields.decode import INVALID, OptionsSchema, shape_of
from agentv.authoring.fields.kinds import FILE, FILE_OR_DIRECTORY
from agentv.authoring.fields.reading import FROM_PROJECT, ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredTarget
from agentv.authoring.fields.spellings import TARGET
from agentv.authoring.source.files import exists, is_file, shown
from agentv.authoring.source.masking import MASK, check_settings, mask, secrets_in, unsearched, without_keys
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import NOWHERE, Canonical, MapNode, Node, Scalar, is_empty, plain, span_of
from agentv.authoring.source.report import Report
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.files import SearchPaths, search_paths
from agentv.model.suite.suite import DEFAULT_RETRY, Retry, TargetSpec, Variable
from agentv.model.suite.tools import GATEWAY_NAMES, ModelProtocol, ModelUpstream
from agentv.model.values.values import lazy_pattern
from agentv.registry.fields import FileGlobs
from agentv.registry.types import Provider, ProviderSettings, Registry
from agentv.templating import RenderError, Scope, has_placeholder, render_text
from agentv.user_code.guard import ForeignError, foreign_code

_FROM_ENVIRONMENT = lazy_pattern(r"\$\{\{|\{[{%].*\benv\b", re.DOTALL)
_PLACEHOLDER = lazy_pattern(r"\$?\{\{.*?\}\}", re.DOTALL)
_KEYS = shape_of(AuthoredTarget).rules.keys()
_EXTRA_KEYS = ExtraKeys(listed=tuple(sorted(_KEYS)), hinted=tuple(TARGET.known), older=TARGET.superseded)

USE_TARGET = "use_target"
"""The key of a target that is another name of one (AgentV)."""

PLUGINS_COMMAND = "'agentv plugins' lists what is installed"
"""Below what is said of a broken plugin."""


def read_target(
    node: Canonical, providers: Registry[Provider], reading: Reading, retry: Retry = DEFAULT_RETRY
) -> TargetSpec | None:
    """A target out of its mapping; None when something is wrong, which is reported.

    Paths in a project file start at the directory that contains `.agentv`. A target whose files are not there, and all
    are beside the eval file, starts there, as in AgentV.

    Args:
        node: the mapping, by its canonical keys.
        providers: what its `provider` can mean.
        reading: of the suite.
        retry: the suite's; what the target says of it wins.
    """
    here, beside = reading.places, reading.places.beside
    if beside is None or beside == here.suite:
        return _read_spared(node, providers, reading, retry)
    own, report = reading.report.empty_copy(), reading.report
    spec = _read_spared(node, providers, reading.reporting_to(own), retry)
    if any(one.code == "missing-file" and one.severity == "error" for one in own.diagnostics):
        other = report.empty_copy()
        there = structs.replace(here, suite=beside, beside=here.suite, _found={})
        found = _read_spared(node, providers, structs.replace(reading, report=other, places=there), retry)
        own, spec = (own, spec) if found is None or other.failed else (other, found)
    for one in own.diagnostics:
        report.add(one)
    report.unset.update(own.unset)
    if own.unrendered:
        report.leave_unrendered()
    return spec


def _read_spared(at: Canonical, providers: Registry[Provider], reading: Reading, retry: Retry) -> TargetSpec | None:
    """The target; None if it cannot be used. Where it is not called, what the environment lacks is noted in it."""
    if not reading.spares:
        return _read(at, providers, reading, retry)
    first = reading.report.empty_copy()  # to see what is missing; then the target is read as if that were set
    _read(at, providers, reading.reporting_to(first), retry)
    if not first.unset:
        return _read(at, providers, reading, retry)
    own, scope = reading.report.empty_copy(), reading.scope
    env = {**scope.env, **{name: f"unset-{name}" for name in first.unset}}
    spec = _read(at, providers, structs.replace(reading, report=own, scope=replace(scope, env=env)), retry)
    for one in first.diagnostics if spec is None else own.diagnostics:
        reading.report.add(one)
    unset = (one for one in first.diagnostics if one.code == "unset-environment")
    return None if spec is None else structs.replace(spec, unset=tuple(unset))


def _read(at: Canonical, providers: Registry[Provider], reading: Reading, retry: Retry) -> TargetSpec | None:
    reading = structs.replace(reading.part(), javascript={}, scope=replace(reading.scope, names=GATEWAY_NAMES))
    if "provider" in at.items and reading.rendered(at.items["provider"]) is None:
        return None
    items = at.items
    provider = _provider(at, providers, reading)
    shape = shape_of(provider.settings) if provider is not None else None
    # whatever else is wrong with it, no message may show them
    said = {key: plain(one) for key, one in items.items() if shape is None or name_of(key, shape) not in shape.open}
    reading.secrets.update(secrets_in(said))
    common = {key: one for key, one in items.items() if key in _KEYS}
    authored = shape_of(AuthoredTarget).decode(common, at, reading, "a target")
    if provider is None or shape is None:
        return None
    takes = shape.from_environment  # what is left blank says nothing there
    given = _settings(at, provider, reading)
    own = {key: one for key, one in given.items() if name_of(key, shape) not in takes or not _blank(one, reading)}
    env = {} if authored is INVALID else authored.env
    variables, drawn = from_environment(shape, own, {**reading.scope.env, **env})
    others = structs.replace(_EXTRA_KEYS, given=drawn) if drawn else _EXTRA_KEYS
    settings = _decoded(provider, own, at, reading, others)
    if settings is INVALID or authored is INVALID or reading.report.failed:
        return None
    closed = {key: one for key, one in own.items() if name_of(key, shape) not in shape.open}
    check_settings({**closed, **{key: one for key, one in items.items() if key == "env"}}, reading.report)
    values = {name_of(key, shape): _value(key, one, shape, reading) for key, one in own.items()}
    values |= {**drawn, "env": dict(authored.env)}
    drawn_headers = _drawn(own.get("headers"), values.get("headers"))
    data = {key: values.pop(key) for key in shape.open if key in values}
    shown = {key: one for key, one in values.items() if key not in shape.secrets}
    if drawn_headers:
        shown["headers"] = {**values["headers"], **dict.fromkeys(drawn_headers, MASK)}
    hidden = {key: one for key, one in values.items() if key in shape.secrets}
    secrets = {*secrets_in(values), *secrets_in(_filled(values, reading.scope)), *secrets_in(hidden, hide=True)}
    secrets |= set(secrets_in(_filled(drawn_headers, reading.scope), hide=True))
    if provider.settings.finds_keys:
        secrets |= reading.environment_secrets()
    upstream = _upstream(settings, {**reading.scope.env, **env}, reading)
    _check_placeholders(repr(values), at, reading, passes=upstream is not None)
    price = None if authored.price is None else authored.price.price
    if upstream is not None:
        secrets.add(upstream.api_key)
        upstream = structs.replace(upstream, price=price)
    reading.secrets.update(secrets)
    search = search_paths({**reading.scope.env, **authored.env})
    if reading.places.beside not in (None, reading.places.suite):
        check_places(settings, own.get("command") or at, search, reading)
    files = _files(settings, authored.fingerprint, search)
    names = {variable.setting: variable.found for variable in variables if variable.found}
    reading.unsearched.update(unsearched({names.get(key, key): one for key, one in values.items()}))
    place, spared = (at.get("name") or at.items["provider"]).at, settings.spares()
    lacking = [structs.replace(one, missing=False) if one.setting in spared else one for one in variables]
    recorded = {"provider": provider.name} | ({} if provider.plugin is None else {"plugin": provider.plugin.owner})
    return TargetSpec(
        name=authored.name or str(plain(at.items["provider"])),
        provider=provider.name,
        settings=settings,
        env=authored.env,
        judge=authored.judge,
        retry=retry if authored.retry is None else authored.retry.over(retry),
        rate=None if authored.rate is None else authored.rate.rate,
        price=price,
        workers=authored.workers,
        timeout_s=authored.timeout_s,
        allow_empty=authored.allow_empty,
        thoughts=authored.thoughts,
        secrets=frozenset(secrets),
        public={**recorded, **data, **mask(shown), **dict.fromkeys(hidden, MASK)},
        fingerprint=_fingerprint(provider, {**data, **without_keys(shown)}, settings, files, reading),
        span=span_of(place) if place is not NOWHERE else None,
        variables=(*lacking, *settings.reads({**reading.scope.env, **env})),
        files=files,
        unfollowed=authored.fingerprint is None and is_unfollowed(settings, search),
        search=search,
        plugin=provider.plugin.owner if provider.plugin is not None else "",
        upstream=upstream,
    )


_NO_KEY = "no-key-required"
"""Stands for a key that is missing and not needed; no secret, so that it is not looked for in texts."""


def _check_placeholders(text: str, at: MapNode, reading: Reading, *, passes: bool) -> None:
    """Report placeholders of the gateway that do not exist, or that nothing fills in."""
    words, known = _OF_GATEWAY.findall(text), GATEWAY_NAMES["gateway"]
    for word in words:
        if word not in known:
            message = f"the gateway has no '{word}'; it has {', '.join(known)}"
            reading.report.error("undefined-variable", at, message, hint=did_you_mean(word, known))
    if words and not passes:
        hint = "set 'gateway' to the protocol of the model, and the API key of its provider"
        message = "the placeholders of the gateway are filled in only where model calls pass it"
        reading.report.warning("no-effect", at, message, hint=hint)


_OF_GATEWAY = lazy_pattern(r"\{\{ gateway\.(\w+) \}\}")


def _upstream(settings: ProviderSettings, env: Mapping[str, str], reading: Reading) -> ModelUpstream | None:
    """The API behind the gateway. Where no call will be made, its key may be missing: replies are recorded."""
    found = settings.upstream(env)
    protocol: ModelProtocol | None = getattr(settings, "model_protocol", None)
    if found is not None or protocol is None or not reading.spares or getattr(settings, "gateway", None) is False:
        return found
    return ModelUpstream.known_to(protocol, env, getattr(settings, "base_url", None), _NO_KEY)


def _drawn(headers: Node | None, values: Any) -> dict[str, Any]:
    """The headers whose values the environment gives: mostly keys, whatever the header is called."""
    if not isinstance(headers, MapNode) or not isinstance(values, Mapping):
        return {}
    return {
        name: values[name]
        for name, node in headers.items.items()
        if isinstance(node, Scalar) and _FROM_ENVIRONMENT.search(node.text) and values.get(name) not in (None, "")
    }


def _settings(at: Canonical, provider: Provider, reading: Reading) -> dict[str, Node]:
    """The provider's own settings, with what stands behind the colon of `provider: name:rest`."""
    own = {key: node for key, node in at.items.items() if key not in _KEYS and not key.startswith("x-")}
    said, short = at.items["provider"], provider.settings.short
    _, colon, rest = said.value.partition(":") if isinstance(said, Scalar) else ("", "", "")
    if not colon:
        return own
    shape = shape_of(provider.settings)
    other = next((key for key in own if name_of(key, shape) == short), None)
    if short is None:
        message = f"'{provider.name}' takes nothing after the colon, found '{rest}'"
        reading.report.error("bad-target", said, message)
    elif other is not None:
        written = at.spelled.get(other, other)
        message = f"'{written}' is set both here and after the colon of 'provider'; keep one of them"
        reading.report.error("two-spellings", at.keys[other], message)
    else:
        own[short] = Scalar(rest, rest, said.at)
    return own


def _value(key: str, node: Node, shape: OptionsSchema, reading: Reading) -> Any:
    rule = shape.rules.get(key)
    verbatim = rule is not None and rule.kind.verbatim
    return plain(node if verbatim else reading.rendered(node) or node)


def _filled(value: Any, scope: Scope) -> Any:
    """What templates that are filled in at every call make of the environment: there secrets stand in full."""
    if isinstance(value, Mapping):
        return {key: _filled(one, scope) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, scope) for one in value]
    if not isinstance(value, str) or not has_placeholder(value):
        return value
    try:
        return render_text(value, scope)
    except RenderError:
        return _PLACEHOLDER.sub(lambda found: _filled_alone(found[0], scope), value)  # some of it needs the case


def _filled_alone(placeholder: str, scope: Scope) -> str:
    try:
        return render_text(placeholder, scope)
    except RenderError:
        return placeholder


def _provider(node: MapNode, providers: Registry[Provider], reading: Reading) -> Provider | None:
    said = node.get("provider")
    if not isinstance(said, Scalar) or not isinstance(said.value, str):
        kinds = ("provider", USE_TARGET)
        misspelt = next((key for key in node.items if nearest(key, kinds)), None)
        if said is None and misspelt is not None:
            reading.unknown_key(misspelt, node, kinds, "a target")
        elif said is None:
            reading.report.error("missing-key", node, f"a target needs 'provider': one of {', '.join(providers.names)}")
        elif isinstance(said, Scalar) and is_empty(said):
            reading.report.error(
                "bad-value", said, f"'provider' must be one of {', '.join(providers.names)}, found nothing"
            )
        elif isinstance(said, Scalar):
            reading.report.error("unknown-provider", said, f"no provider '{said.text}'")
        return None
    name = said.value.partition(":")[0]
    if name in providers.not_yet:
        report_not_yet(name, said, reading.report)
        return None
    provider = providers.find(name)
    problem = providers.problem(name) if provider is None else None
    if problem is not None:
        reading.report.error(problem.code, said, problem.message, hint=problem.hint, notes=(PLUGINS_COMMAND,))
    elif provider is None:
        hint = did_you_mean(name, providers.names)
        notes = () if hint else (f"there are {', '.join(providers.names)}",)
        reading.report.error("unknown-provider", said, f"no provider '{name}'", hint=hint, notes=notes)
        _report_misspelt(node, providers.find(nearest(name, providers.names) or ""), reading)
    return provider


def report_not_yet(name: str, at: Node | None, report: Report) -> None:
    """Report the use of a provider that is not built yet."""
    hint = "read its sessions with 'agentv import copilot', and grade them with 'provider: replay'"
    message = f"the provider '{name}' is recognized but not supported yet"
    report.error("not-yet", at, message, hint=hint if name == "copilot-log" else None)


def _report_misspelt(node: MapNode, likely: Provider | None, reading: Reading) -> None:
    """Report the misspelt keys of a target whose provider is unknown; other keys may be right.

    Args:
        node: the target.
        likely: the provider that was probably meant.
        reading: whose report gets them.
    """
    known = {*TARGET.known, *(shape_of(likely.settings).rules if likely is not None else ())}
    for key in node.items.keys() - known:
        if nearest(key, known):
            reading.unknown_key(key, node, known, "a target")


def _decoded(provider: Provider, own: Mapping[str, Node], at: MapNode, reading: Reading, extra: ExtraKeys) -> Any:
    """The settings of a target. What the code of a plugin raises over them is said of the plugin."""
    shape = shape_of(provider.settings)
    if provider.plugin is None:
        return shape.decode(own, at, reading, f"a target of {provider.name}", extra=extra)
    try:
        with foreign_code("bad-plugin", provider.plugin.title):
            made = shape.decode(own, at, reading, f"a target of {provider.name}", extra=extra)
            wrong = _wrong_facts(made) if made is not INVALID else None
    except ForeignError as error:
        wrong, made = error.failure.message, INVALID
    if wrong is not None:
        reading.report.error("bad-plugin", at.items["provider"], wrong, notes=(PLUGINS_COMMAND,))
        return INVALID
    return made


def _wrong_facts(settings: ProviderSettings) -> str | None:
    """What a plugin says of its settings in a wrong type; asked once here, before the engine asks in every call."""
    endpoint: object = settings.endpoint()
    free: object = settings.free
    if endpoint is not None and not isinstance(endpoint, str):
        return f"{type(settings).__qualname__}.endpoint() must return text or None, returned {type(endpoint).__name__}"
    if not isinstance(free, bool):
        return f"{type(settings).__qualname__}.free must be True or False, found {free!r}"
    return None


def _files(settings: object, more: FileGlobs | None, search: SearchPaths) -> dict[str, str]:
    """The files that the settings name and what they import, such as a command's ./agent.sh, with their sha256."""
    paths = list(files_behind(settings, search))
    if more is not None:
        from agentv.authoring.source.files import files_of_globs

        paths += files_of_globs(more)
    found = ((path, digest_of(path)) for path in paths)
    return {path: digest for path, digest in found if digest is not None}


def _fingerprint(
    provider: Provider, shown: Mapping[str, Any], settings: object, files: Mapping[str, str], reading: Reading
) -> str:
    digest = hashlib.sha256(json.dumps([provider.name, shown], sort_keys=True, default=str).encode())
    if provider.plugin is not None:
        digest.update(provider.plugin.identity.encode())  # another version, or edited code, may answer otherwise
    for found in files.values():
        digest.update(found.encode())
    for path in files_of_settings(settings):
        try:
            digest.update(reading.reader.read(path))
        except OSError:
            continue  # it is reported where the target is used
    return digest.hexdigest()


def files_of_settings(settings: object) -> Iterator[str]:
    """The files that the settings name: a target's own code or recording."""
    for rule in shape_of(type(settings)).rules.values():
        value = getattr(settings, rule.name)
        path = value if rule.kind in (FILE, FILE_OR_DIRECTORY) else getattr(value, "path", None)
        if isinstance(path, str) and rule.kind is FILE_OR_DIRECTORY and os.path.isdir(path):  # noqa: PTH112  # text
            yield from sorted(map(str, Path(path).glob("*.jsonl")))
        elif isinstance(path, str):
            yield path


def check_places(settings: object, at: Node, search: SearchPaths, reading: Reading) -> None:
    """Report files of a target that exist only where its paths do not begin, and those that exist twice and differ.

    Args:
        settings: of a target of a project file.
        at: the command, or the target.
        search: where the target's environment has code looked for.
        reading: of the file that holds the target.
    """
    home, beside = reading.places.suite, reading.places.beside
    from agentv.authoring.code.command_files import paths_of_command

    rules = shape_of(type(settings)).rules.values()
    recordings = (getattr(settings, rule.name) for rule in rules if rule.kind is FILE_OR_DIRECTORY and not rule.older)
    for path in filter(None, recordings):
        _compare(path, os.path.normpath(f"{beside}{os.sep}{os.path.relpath(path, home)}"), home, at, reading)
    for command in commands_of(settings):
        if not command.cwd:
            continue  # an agent's installed program, which the target does not name
        there = os.path.normpath(f"{beside}{os.sep}{os.path.relpath(command.cwd, home)}")
        known = paths_of_command(command, search)
        for path in paths_of_command(structs.replace(command, cwd=there), search):
            written = os.path.relpath(path, there)
            here = os.path.normpath(f"{command.cwd}{os.sep}{written}")
            if path in known or written not in str(command) or not is_file(path):
                continue
            if exists(here):
                _compare(here, path, command.cwd, at, reading)
                continue
            hint = f"did you mean '{os.path.relpath(path, command.cwd)}'?"
            message = f"file '{written}' does not exist where this command runs"
            reading.report.error("missing-file", at, message, hint=hint, notes=(FROM_PROJECT,))


def _compare(path: str, other: str, home: str, at: Node, reading: Reading) -> None:
    """Report two different files that a path may mean: AgentV takes the one beside the eval file."""
    if is_file(path) and is_file(other) and Path(path).read_bytes() != Path(other).read_bytes():
        message = f"'{os.path.relpath(path, home)}' may be {shown(path)} or {shown(other)}, which differ"
        hint = f"for the second, write '{os.path.relpath(other, home)}'; for the first, rename one of them"
        reading.report.error("ambiguous-path", at, message, hint=hint, notes=(FROM_PROJECT,))


_ALIKE = 0.75
"""Share of letters in place at which the name of a variable is a misspelt one."""

_COMMON = lazy_pattern(r"_|API|KEYS?$|TOKEN$|SECRET$", re.IGNORECASE)
"""What the names of all keys share, so that it says nothing of whose they are."""


def _blank(node: Node, reading: Reading) -> bool:
    rendered = reading.rendered(node)
    return rendered is not None and is_empty(rendered)


def name_of(key: str, shape: OptionsSchema) -> str:
    """The canonical name of a setting."""
    rule = shape.rules.get(key)
    return rule.name.rstrip("_") if rule is not None else key


def from_environment(
    shape: OptionsSchema, own: Mapping[str, Node], env: Mapping[str, str]
) -> tuple[tuple[Variable, ...], dict[str, str]]:
    """The settings that the environment may give, and the values of those that it does, since the author gives none."""
    written = {name_of(key, shape) for key in own}
    variables: list[Variable] = []
    values: dict[str, str] = {}
    for setting, source in shape.from_environment.items():
        given = setting in written
        found = None if given else next((name for name in source.names if env.get(name, "").strip()), None)
        if found is not None:
            values[setting] = env[found].strip()
        missing = source.required and not given and found is None
        variables.append(Variable(setting, source.names, found, missing, setting in shape.secrets))
    return tuple(variables), values


def report_missing(specs: Iterable[TargetSpec], reading: Reading, *, asks: bool) -> None:
    """Say what must be set before these targets can be asked: once a target, an error where they will be.

    Args:
        specs: the targets that are used.
        reading: of the suite.
        asks: they will be asked now.
    """
    severity: Severity = "error" if asks else "warning"
    for spec in {(spec.name, spec.span): spec for spec in specs if spec.missing or spec.unset}.values():
        for variable in spec.missing:
            notes = tuple(_notes(variable, {**reading.scope.env, **spec.env}, in_file=spec.span is not None))
            hint, at = how_to_set(variable), spec.span
            if variable.secret:
                message = f"target '{spec.name}' needs an API key"
                reading.report.add(Diagnostic("no-api-key", message, at, severity, hint, notes))
            else:
                message = f"target '{spec.name}' needs '{variable.setting}'"
                reading.report.add(Diagnostic("missing-key", message, at, severity, hint, notes))
        for unset in spec.unset:
            reading.report.add(replace(unset, severity=severity))


def _notes(variable: Variable, env: Mapping[str, str], *, in_file: bool) -> Iterator[str]:
    if in_file and variable.secret:
        yield f"if your variable has another name, add {variable.setting}: ${{{{ NAME }}}} to the target"
    elif in_file:
        yield f"or write '{variable.setting}' in the target"
    near = nearly_set(variable.names, env)
    if near is not None:
        yield f"{near} is set: did you mean that one?"


def how_to_set(variable: Variable) -> str:
    """What to do where it is missing."""
    return f"set {' or '.join(variable.names)}, in the environment or in a .env file"


def nearly_set(names: Iterable[str], env: Mapping[str, str]) -> str | None:
    """The name of a variable that is set and was most likely meant to be one of these."""
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    known = [one for one, value in env.items() if one not in names and value.strip() and _COMMON.search(one)]
    alike = DamerauLevenshtein.normalized_similarity
    found = (extractOne(name, known, scorer=alike, processor=_whose, score_cutoff=_ALIKE) for name in names)
    return next((one[0] for one in found if one is not None), None)


def _whose(name: str) -> str:
    """`OPENAI_API_KEY` → `openai`."""
    return _COMMON.sub("", name).lower()
