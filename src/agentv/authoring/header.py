"""The header of an eval file: everything except its cases (SPEC sections 2 and 3)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, structs
from msgspec.structs import replace

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.typed_entries import AssertionTypes
from agentv.authoring.cases.case import CaseReader
from agentv.authoring.cases.case_assertions import read_shared
from agentv.authoring.cases.context import (
    CaseContext,
    CaseDefaults,
    CaseNotes,
    SuiteWork,
    TrialLimits,
    directory_of_agents,
    place_of_budget,
    places_of_counts,
    read_defaults,
    refuse_lacking,
)
from agentv.authoring.config import Config, dotenv_of, merged, over, read_config, read_dotenv, read_run
from agentv.authoring.fields import translation
from agentv.authoring.fields.case_keys import GOVERNANCE, ClusterReader, read_tags
from agentv.authoring.fields.decode import INVALID, kind_for, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest, Registries
from agentv.authoring.fields.schema import AuthoredJudgeMinimums, AuthoredSuite
from agentv.authoring.source.masking import secrets_in
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar, is_empty, plain, span_of
from agentv.authoring.targets.registry import DEFAULT, TargetRegistry
from agentv.authoring.targets.suite_targets import SuiteTargets, one_default, open_registry
from agentv.model.suite.files import GraderFiles, search_paths
from agentv.model.suite.suite import JudgeMinimums, RunSettings, Suite
from agentv.model.values.values import EMPTY, Json, JsonObject, Span
from agentv.registry.extensions import HOW_TO_GET, PORTS, SUITE_KEYS, lacking, missing
from agentv.registry.fields import Preprocessor
from agentv.registry.types import Provider, Registry
from agentv.templating import Language, Scope, has_placeholder

_PREFIX = "min_"
"""Prefix of the minimums in `judge:`. No target setting starts with it, so a misspelt key is compared with these."""


def split_minimums(node: Node | None, reading: Reading) -> tuple[Node | None, JudgeMinimums | None]:
    """Split a suite's `judge:` into the judge and the minimums that it must reach.

    Args:
        node: the suite's `judge:`.
        reading: context of the suite.

    Returns:
        The judge's node and the minimums. If only a name remains, the node is that name; if nothing remains, it is None
        and the minimums apply to the judge in effect.
    """
    if not isinstance(node, MapNode) or not any(key.startswith(_PREFIX) for key in node.items):
        return node, None
    own = {key: item for key, item in node.items.items() if key.startswith(_PREFIX)}
    rest = {key: item for key, item in node.items.items() if key not in own}
    if needs := lacking(PORTS, "LabelledRuns"):
        key = next(iter(own))
        reading.report.error("missing-extra", node.keys[key], f"'{key}' {needs}", hint=HOW_TO_GET)
    read = shape_of(AuthoredJudgeMinimums).decode(own, node, reading, "'judge'")
    minimums = None if read is INVALID else JudgeMinimums(read.min_tpr, read.min_tnr)
    if not rest:
        return None, minimums
    if len(rest) == 1 and isinstance(name := rest.get("name"), Scalar):
        return name, minimums
    return MapNode(rest, {key: node.keys[key] for key in rest}, node.at), minimums


class Header(Struct, frozen=True):
    """Context for the rest of an eval file.

    Attributes:
        suite: the suite without cases.
        reading: context for the cases.
        authored: the suite's canonical keys.
        threshold: threshold of cases without their own, with its position.
        not_missing: keys not to report as missing: misspelt ones, which were reported, and `judge` if the suite has it.
    """

    suite: Suite
    reading: Reading
    cases: CaseReader
    targets: SuiteTargets
    authored: AuthoredSuite
    threshold: tuple[float | None, Place | None]
    not_missing: frozenset[str]


def read_header(path: str, written: MapNode, reading: Reading, request: LoadRequest, registries: Registries) -> Header:
    """Read the header of an eval file. Invalid parts are reported and left out."""
    root, others = translation.suite(written, reading)
    env = environment(root.get("env"), reading, request)
    reading.secrets.update(secrets_in(dict(request.variables)))  # variables of cases are data; these may be secrets
    reading = reading.within(Scope(request.variables, env))
    registry, config = open_project(reading.places.suite, registries.providers, reading)
    targets = SuiteTargets(request, registry, path)
    custom = registries.custom(reading.places.suite, reading.places.root)
    for file, issue in custom.issues:
        add = reading.report.warning if issue.warning else reading.report.error
        add(issue.code, Span.start_of(file), issue.message, hint=issue.hint)
    assertions = AssertionReader(AssertionTypes(registries.assertions, custom))
    reading = replace(reading, entries=assertions.entries)
    authored: AuthoredSuite = shape_of(AuthoredSuite).read(root.items, root, reading, "an eval file")
    registry.default_provider = authored.default_provider
    if authored.preprocessors is not None and not is_empty(authored.preprocessors):
        reading = _with_preprocessors(authored.preprocessors, reading)
    language = Language(nunjucks=authored.template == "nunjucks", missing_empty=authored.missing_vars == "empty")
    scope = structs.replace(reading.scope, language=language)
    reading = replace(reading, scope=scope, given=_default_options(authored, span_of(root.at)))
    run = _run(authored, request.cluster or authored.cluster, config, reading)
    registry.retry = run.retry or registry.retry
    defaults = read_defaults(authored, root, request.variables, reading, replaces="evalcases" in written.keys)
    asked = tuple(targets.asked(authored.targets, reading))
    work = None
    if missing(SUITE_KEYS):
        refuse_lacking(SUITE_KEYS, root, reading.report)
    else:
        workspace = authored.workspace
        if workspace is None and authored.environment is None:
            workspace = directory_of_agents(asked, reading)
        choose = registries.sandbox if request.for_run and request.asks_targets else None
        work = SuiteWork(authored, request, workspace, choose)
    judge, minimums = split_minimums(authored.judge, reading)
    env_node = root.get("env")
    own_env = {name: env[name] for name in env_node.items if name in env} if isinstance(env_node, MapNode) else {}
    env_text = repr(sorted(own_env.items())).encode(errors="surrogatepass")
    suite = Suite(
        name=authored.name or name_of(path),
        cases=(),
        path=path,
        description=authored.description,
        targets=asked,
        prompts={prompt.id: prompt.label for prompt in defaults.prompts},
        prompt_texts={prompt.id: prompt.text for prompt in defaults.prompts},
        judge=targets.judge(judge, reading),
        judge_minimums=minimums,
        forced_judge=targets.forced_judge(reading),
        default_judge=targets.default_judge(reading),
        threshold=authored.threshold if authored.threshold is not None else config.threshold,
        tags=read_tags(authored.tags, reading),
        run=run,
        env=env,
        env_sha256=hashlib.sha256(env_text).hexdigest() if own_env else "",
        own_env=own_env,
        metadata=_metadata(authored, others),
        span=span_of(root.at),
        root=reading.places.root,
        variants=work.reader.variants(reading) if work is not None and work.varies else (),
    )
    context = CaseContext(
        defaults=defaults,
        assertions=assertions,
        registry=registry,
        suite=suite,
        authored=authored,
        request=request,
        clusters=None if run.cluster is None else ClusterReader(run.cluster, env),
        work=work,
        limits=TrialLimits(request, place_of_budget(root), places_of_counts(authored.run)),
    )
    notes = CaseNotes(GraderFiles(search=search_paths(env)))
    reading = reading.within(Scope(defaults.vars, env)).rendering(reading.renders or defaults.renders)
    cases = CaseReader(context, notes, read_shared(context, reading))
    threshold = (None, None) if authored.require_all else _threshold(defaults, root, suite.threshold, config)
    not_missing = root.not_missing if judge is None else root.not_missing | {"judge"}
    return Header(suite, reading, cases, targets, authored, threshold, not_missing)


def environment(node: Node | None, reading: Reading, request: LoadRequest) -> dict[str, str]:
    """The environment of a suite: the process's variables, the suite's `env`, and `.env` files."""
    own = {} if node is None else _suite_env(node, reading)
    places = reading.places
    if request.env_file is not None:
        dotenv = read_dotenv(request.env_file, reading.reader, reading.report)
    else:
        dotenv = dotenv_of(places.suite, places.root, reading.reader, reading.report)
    return merged(request.process_env, own, dotenv)


def _run(authored: AuthoredSuite, cluster: str | None, config: Config, reading: Reading) -> RunSettings:
    """The run settings with the suite's limits. The suite's or command line's `cluster` overrides that of `run`."""
    own, run = authored.run, config.run
    if authored.cluster is not None and isinstance(own, MapNode) and "cluster" in own.items:
        message = "'cluster' is set both here and in the suite; keep one of them"
        reading.report.error("two-spellings", own.keys["cluster"], message)
    if own is not None:
        run = over(read_run(own, reading), run)
    if authored.limits is not None:
        run = replace(run, trial_budget_usd=authored.limits.budget_usd)
    return run if cluster is None else replace(run, cluster=cluster)


def _with_preprocessors(node: Node, reading: Reading) -> Reading:
    """The context with the suite's preprocessors. They are checked here because no rubric may use them."""
    kind, rendered = kind_for(tuple[Preprocessor, ...]), reading.rendered(node)
    if rendered is None:
        return reading
    if kind.accepts(rendered):
        found = kind.read(rendered, reading, "preprocessors")
        return reading if found is INVALID else reading.with_rubric({"preprocessors": (found, node.at)})
    reading.report.unfit(node, "'preprocessors' must be a list")
    return reading


def _threshold(
    defaults: CaseDefaults, root: MapNode, of_suite: float | None, config: Config
) -> tuple[float | None, Place | None]:
    """The threshold of cases without their own, and its position."""
    if defaults.threshold is not None:
        return defaults.threshold, defaults.threshold_at
    node = root.get("threshold") or config.nodes.get("threshold")
    return of_suite, node.at if node is not None else None


def _default_options(authored: AuthoredSuite, at: Place) -> dict[str, dict[str, Node]]:
    """Assertion type → options for the suite's assertions that do not set them."""
    made: dict[str, dict[str, Node]] = {}
    if authored.regex != "python":
        made["regex"] = {"syntax": Scalar(authored.regex, authored.regex, at)}
    if not authored.trim:
        made |= {name: {"trim": Scalar(False, "false", at)} for name in ("equals", "starts-with", "ends-with")}
    return made


def _suite_env(node: Node, reading: Reading) -> dict[str, str]:
    if isinstance(node, Scalar) and node.value is None:
        return {}
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'env' must be a mapping")
        return {}
    found = {}
    for key, item in node.items.items():
        if isinstance(item, Scalar) and item.value is not None:
            found[key] = item.value if isinstance(item.value, str) else item.text
            if has_placeholder(found[key]):
                message = f"'env' is not rendered: {key} is this text as it is written, with its braces"
                hint = "to pass a variable of the environment on, leave it out; a target's own 'env' is rendered"
                reading.report.warning("bad-value", item, message, hint=hint)
        else:
            reading.report.unfit(item, f"'{key}' must be text")
    return found


def _metadata(authored: AuthoredSuite, others: Mapping[str, Json]) -> JsonObject:
    governance = {GOVERNANCE: authored.governance} if authored.governance else {}
    facts = {
        "version": authored.version,
        "category": authored.category,
        "author": plain(authored.author) if authored.author is not None else None,
        "license": authored.license,
        "requires": plain(authored.requires) if authored.requires is not None else None,
    }
    given = {key: value for key, value in facts.items() if value is not None}
    return {**authored.metadata, **governance, **others, **given} or EMPTY


def name_of(path: str) -> str:
    """Default name of a suite, from its path."""
    file = Path(path)
    if file.name in {"EVAL.yaml", "EVAL.yml"}:
        return file.parent.name
    for suffix in (".eval.yaml", ".eval.yml", ".eval.jsonl", ".eval.csv", ".eval.py"):
        if file.name.endswith(suffix):
            return file.name.removesuffix(suffix)
    return file.stem


def open_project(directory: str, providers: Registry[Provider], reading: Reading) -> tuple[TargetRegistry, Config]:
    """The targets available in a directory, with the project's defaults, and the project's configuration."""
    config = read_config(directory, reading)
    registry = open_registry(directory, providers, reading, more=config.providers)
    folders = [Path(one).parent for one in (registry.path, config.path) if one is not None]
    together = len(folders) == 2 and folders[0] == folders[1]
    named = {"target": config.target, "judge": config.judge}
    own = {role: Scalar(name, name, config.nodes[role].at) for role, name in named.items() if name}
    registry.default_target = _default("target", registry.default_target, own.get("target"), reading, together=together)
    registry.default_judge = _default("judge", registry.default_judge, own.get("judge"), reading, together=together)
    entry = registry.entries.get(DEFAULT)  # used if no default target is named
    name = entry.get("name") if entry is not None else None
    if registry.default_target is None and isinstance(name, Scalar):
        registry.default_target = name
    return registry, config


def _default(
    role: str, of_targets: Scalar | None, of_config: Scalar | None, reading: Reading, *, together: bool
) -> Scalar | None:
    """The default from `targets.yaml`, or else the configuration. If both are in one `.agentv`, they must agree."""
    if not together:
        return of_targets or of_config
    return one_default(role, [of_config] if of_config is not None else [], of_targets, reading)
