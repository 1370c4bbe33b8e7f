"""Reads one target: the keys of every target, and the settings of its provider (SPEC section 12)."""

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
from agentv.model.suite.tools import GATEWAY_NAMES, ModelUpstream
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
"""The key of an alias, whose value is the name of another target (AgentV)."""

PLUGINS_COMMAND = "'agentv plugins' lists what is installed"
"""Note for errors in plugins."""


def read_target(
    node: Canonical, providers: Registry[Provider], reading: Reading, retry: Retry = DEFAULT_RETRY
) -> TargetSpec | None:
    """The target for a mapping, or None after reporting errors.

    Paths in a project file are relative to the directory that contains `.agentv`. If a target's files are missing there
    but all exist next to the eval file, they are relative to that file, as in AgentV.

    Args:
        node: the mapping, with canonical keys.
        providers: the known providers.
        reading: context of the suite.
        retry: retry settings of the suite, overridden by the target's.
    """
    here, beside = reading.places, reading.places.beside
    if beside is None or beside == here.suite:
        return _read_uncalled(node, providers, reading, retry)
    own, report = reading.report.empty_copy(), reading.report
    spec = _read_uncalled(node, providers, reading.reporting_to(own), retry)
    if any(one.code == "missing-file" and one.severity == "error" for one in own.diagnostics):
        other = report.empty_copy()
        there = structs.replace(here, suite=beside, beside=here.suite, _found={})
        found = _read_uncalled(node, providers, structs.replace(reading, report=other, places=there), retry)
        own, spec = (own, spec) if found is None or other.failed else (other, found)
    for one in own.diagnostics:
        report.add(one)
    report.unset.update(own.unset)
    if own.unrendered:
        report.leave_unrendered()
    return spec


def _read_uncalled(at: Canonical, providers: Registry[Provider], reading: Reading, retry: Retry) -> TargetSpec | None:
    """The target, or None after reporting errors.

    If some targets are not called, unset variables are not reported but kept in the target.
    """
    if not reading.spares:
        return _read(at, providers, reading, retry)
    first = reading.report.empty_copy()  # finds unset variables, which then get dummy values
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
    # recorded first, so that no diagnostic about the target shows its secrets
    texts = {key: plain(one) for key, one in items.items() if shape is None or name_of(key, shape) not in shape.open}
    reading.secrets.update(secrets_in(texts))
    common = {key: one for key, one in items.items() if key in _KEYS}
    authored = shape_of(AuthoredTarget).decode(common, at, reading, "a target")
    if provider is None or shape is None:
        return None
    takes = shape.from_environment  # for these, a blank value counts as missing
    given = _settings(at, provider, reading)
    own = {key: one for key, one in given.items() if name_of(key, shape) not in takes or not _blank(one, reading)}
    env = {**reading.scope.env, **({} if authored is INVALID else authored.env)}
    variables, from_env = from_environment(shape, own, env)
    others = structs.replace(_EXTRA_KEYS, given=from_env) if from_env else _EXTRA_KEYS
    settings = _decoded(provider, own, at, reading, others)
    if settings is INVALID or authored is INVALID or reading.report.failed:
        return None
    closed = {key: one for key, one in own.items() if name_of(key, shape) not in shape.open}
    check_settings({**closed, **{key: one for key, one in items.items() if key == "env"}}, reading.report)
    values = {name_of(key, shape): _value(key, one, shape, reading) for key, one in own.items()}
    values |= {**from_env, "env": dict(authored.env)}
    from_env_headers = _environment_headers(own.get("headers"), values.get("headers"))
    data = {key: values.pop(key) for key in shape.open if key in values}
    shown = {key: one for key, one in values.items() if key not in shape.secrets}
    if from_env_headers:
        shown["headers"] = {**values["headers"], **dict.fromkeys(from_env_headers, MASK)}
    hidden = {key: one for key, one in values.items() if key in shape.secrets}
    secrets = {*secrets_in(values), *secrets_in(_filled(values, reading.scope)), *secrets_in(hidden, hide=True)}
    secrets |= set(secrets_in(_filled(from_env_headers, reading.scope), hide=True))
    if provider.settings.finds_keys:
        secrets |= reading.environment_secrets()
    upstream, protocol = settings.upstream(env), getattr(settings, "model_protocol", None)
    if upstream is None and protocol and reading.spares and getattr(settings, "gateway", None) is not False:
        # no call will be made, as answers are replayed: the API key may be missing
        upstream = ModelUpstream.from_settings(protocol, env, getattr(settings, "base_url", None), _NO_KEY)
    _check_placeholders(repr(values), at, reading, passes=upstream is not None)
    price = None if authored.price is None else authored.price.price
    if upstream is not None:
        secrets.add(upstream.api_key)
        upstream = structs.replace(upstream, price=price)
    reading.secrets.update(secrets)
    search = search_paths(env)
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
        variables=(*lacking, *settings.reads(env)),
        files=files,
        unfollowed=authored.fingerprint is None and is_unfollowed(settings, search),
        search=search,
        plugin=provider.plugin.owner if provider.plugin is not None else "",
        upstream=upstream,
    )


_NO_KEY = "no-key-required"
"""Value for a missing API key that is not needed. It is not treated as a secret, so texts are not searched for it."""


def _check_placeholders(text: str, at: MapNode, reading: Reading, *, passes: bool) -> None:
    """Report placeholders of the gateway that do not exist, or have no effect because no gateway is used."""
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


def _environment_headers(headers: Node | None, values: Any) -> dict[str, Any]:
    """The headers whose values come from the environment. Most are keys, whatever their names."""
    if not isinstance(headers, MapNode) or not isinstance(values, Mapping):
        return {}
    return {
        name: values[name]
        for name, node in headers.items.items()
        if isinstance(node, Scalar) and _FROM_ENVIRONMENT.search(node.text) and values.get(name) not in (None, "")
    }


def _settings(at: Canonical, provider: Provider, reading: Reading) -> dict[str, Node]:
    """The provider's own settings, including the text after the colon of `provider: name:rest`."""
    own = {key: node for key, node in at.items.items() if key not in _KEYS and not key.startswith("x-")}
    named, short = at.items["provider"], provider.settings.short
    _, colon, rest = named.value.partition(":") if isinstance(named, Scalar) else ("", "", "")
    if not colon:
        return own
    shape = shape_of(provider.settings)
    other = next((key for key in own if name_of(key, shape) == short), None)
    if short is None:
        message = f"'{provider.name}' takes nothing after the colon, found '{rest}'"
        reading.report.error("bad-target", named, message)
    elif other is not None:
        written = at.spelled.get(other, other)
        message = f"'{written}' is set both here and after the colon of 'provider'; keep one of them"
        reading.report.error("two-spellings", at.keys[other], message)
    else:
        own[short] = Scalar(rest, rest, named.at)
    return own


def _value(key: str, node: Node, shape: OptionsSchema, reading: Reading) -> Any:
    rule = shape.rules.get(key)
    verbatim = rule is not None and rule.kind.verbatim
    return plain(node if verbatim else reading.rendered(node) or node)


def _filled(value: Any, scope: Scope) -> Any:
    """The value with variables of the environment filled in, as at every call, in order to find secrets."""
    if isinstance(value, Mapping):
        return {key: _filled(one, scope) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, scope) for one in value]
    if not isinstance(value, str) or not has_placeholder(value):
        return value
    try:
        return render_text(value, scope)
    except RenderError:
        return _PLACEHOLDER.sub(lambda found: _filled_alone(found[0], scope), value)  # other placeholders need a case


def _filled_alone(placeholder: str, scope: Scope) -> str:
    try:
        return render_text(placeholder, scope)
    except RenderError:
        return placeholder


def _provider(node: MapNode, providers: Registry[Provider], reading: Reading) -> Provider | None:
    named = node.get("provider")
    if not isinstance(named, Scalar) or not isinstance(named.value, str):
        kinds = ("provider", USE_TARGET)
        misspelt = next((key for key in node.items if nearest(key, kinds)), None)
        if named is None and misspelt is not None:
            reading.unknown_key(misspelt, node, kinds, "a target")
        elif named is None:
            reading.report.error("missing-key", node, f"a target needs 'provider': one of {', '.join(providers.names)}")
        elif isinstance(named, Scalar) and is_empty(named):
            reading.report.error(
                "bad-value", named, f"'provider' must be one of {', '.join(providers.names)}, found nothing"
            )
        elif isinstance(named, Scalar):
            reading.report.error("unknown-provider", named, f"no provider '{named.text}'")
        return None
    name = named.value.partition(":")[0]
    if name in providers.not_yet:
        report_not_yet(name, named, reading.report)
        return None
    provider = providers.find(name)
    problem = providers.problem(name) if provider is None else None
    if problem is not None:
        reading.report.error(problem.code, named, problem.message, hint=problem.hint, notes=(PLUGINS_COMMAND,))
    elif provider is None:
        hint = did_you_mean(name, providers.names)
        notes = () if hint else (f"there are {', '.join(providers.names)}",)
        reading.report.error("unknown-provider", named, f"no provider '{name}'", hint=hint, notes=notes)
        _report_misspelt(node, providers.find(nearest(name, providers.names) or ""), reading)
    return provider


def _report_misspelt(node: MapNode, likely: Provider | None, reading: Reading) -> None:
    """Report the misspelt keys of a target whose provider is probably `likely`; other unknown keys may be correct."""
    known = {*TARGET.known, *(shape_of(likely.settings).rules if likely is not None else ())}
    for key in node.items.keys() - known:
        if nearest(key, known):
            reading.unknown_key(key, node, known, "a target")


def report_not_yet(name: str, at: Node | None, report: Report) -> None:
    """Report the use of a provider that is not supported yet."""
    hint = "read its sessions with 'agentv import copilot', and grade them with 'provider: replay'"
    message = f"the provider '{name}' is recognized but not supported yet"
    report.error("not-yet", at, message, hint=hint if name == "copilot-log" else None)


def _decoded(provider: Provider, own: Mapping[str, Node], at: MapNode, reading: Reading, extra: ExtraKeys) -> Any:
    """The settings of a target, or INVALID after reporting errors. An exception of a plugin's code is its error."""
    shape = shape_of(provider.settings)
    if provider.plugin is None:
        return shape.decode(own, at, reading, f"a target of {provider.name}", extra=extra)
    try:
        with foreign_code("bad-plugin", provider.plugin.title):
            made = shape.decode(own, at, reading, f"a target of {provider.name}", extra=extra)
            wrong = _wrong_types(made) if made is not INVALID else None
    except ForeignError as error:
        wrong, made = error.failure.message, INVALID
    if wrong is not None:
        reading.report.error("bad-plugin", at.items["provider"], wrong, notes=(PLUGINS_COMMAND,))
        return INVALID
    return made


def _wrong_types(settings: ProviderSettings) -> str | None:
    """An error message if `endpoint()` or `free` of a plugin's settings has a wrong type; the engine uses both."""
    endpoint: object = settings.endpoint()
    free: object = settings.free
    if endpoint is not None and not isinstance(endpoint, str):
        return f"{type(settings).__qualname__}.endpoint() must return text or None, returned {type(endpoint).__name__}"
    if not isinstance(free, bool):
        return f"{type(settings).__qualname__}.free must be True or False, found {free!r}"
    return None


def _files(settings: object, more: FileGlobs | None, search: SearchPaths) -> dict[str, str]:
    """Path → SHA-256 of the files that the settings name, such as a command's ./agent.sh, and that these import."""
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
        digest.update(provider.plugin.identity.encode())  # another version, or edited code, may give other answers
    for found in files.values():
        digest.update(found.encode())
    for path in files_of_settings(settings):
        try:
            digest.update(reading.reader.read(path))
        except OSError:
            continue  # reported where the target is used
    return digest.hexdigest()


def files_of_settings(settings: object) -> Iterator[str]:
    """The files that the settings name: a target's own code or recordings."""
    for rule in shape_of(type(settings)).rules.values():
        value = getattr(settings, rule.name)
        path = value if rule.kind in (FILE, FILE_OR_DIRECTORY) else getattr(value, "path", None)
        if isinstance(path, str) and rule.kind is FILE_OR_DIRECTORY and os.path.isdir(path):  # noqa: PTH112  # text
            yield from sorted(map(str, Path(path).glob("*.jsonl")))
        elif isinstance(path, str):
            yield path


def check_places(settings: object, at: Node, search: SearchPaths, reading: Reading) -> None:
    """Report files of a target in a project file that exist only next to the eval file, or there with other content.

    Args:
        settings: settings of the target.
        at: node of the command, or of the target.
        search: search paths in the target's environment.
        reading: context of the project file.
    """
    home, beside = reading.places.suite, reading.places.beside
    from agentv.authoring.code.command_files import paths_of_command

    rules = shape_of(type(settings)).rules.values()
    recordings = (getattr(settings, rule.name) for rule in rules if rule.kind is FILE_OR_DIRECTORY and not rule.older)
    for path in filter(None, recordings):
        _report_different(path, os.path.normpath(f"{beside}{os.sep}{os.path.relpath(path, home)}"), home, at, reading)
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
                _report_different(here, path, command.cwd, at, reading)
                continue
            hint = f"did you mean '{os.path.relpath(path, command.cwd)}'?"
            message = f"file '{written}' does not exist where this command runs"
            reading.report.error("missing-file", at, message, hint=hint, notes=(FROM_PROJECT,))


def _report_different(path: str, other: str, home: str, at: Node, reading: Reading) -> None:
    """Report two different files that a path may mean; AgentV uses the one next to the eval file."""
    if is_file(path) and is_file(other) and Path(path).read_bytes() != Path(other).read_bytes():
        message = f"'{os.path.relpath(path, home)}' may be {shown(path)} or {shown(other)}, which differ"
        hint = f"for the second, write '{os.path.relpath(other, home)}'; for the first, rename one of them"
        reading.report.error("ambiguous-path", at, message, hint=hint, notes=(FROM_PROJECT,))


_SIMILAR = 0.75
"""Minimum normalized similarity of two variables' names for a suggestion."""

_COMMON = lazy_pattern(r"_|API|KEYS?$|TOKEN$|SECRET$", re.IGNORECASE)
"""Parts that the names of most API keys contain, and that do not identify the provider."""


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
    """The variables for settings that the environment can provide, and setting → value for those that it does set."""
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
    """Report what must be set before targets can be called, once for each target.

    Args:
        specs: the targets that are used.
        reading: context of the suite.
        asks: whether they will be called now, so that this is an error; otherwise a warning.
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
    """A hint for a missing variable."""
    return f"set {' or '.join(variable.names)}, in the environment or in a .env file"


def nearly_set(names: Iterable[str], env: Mapping[str, str]) -> str | None:
    """The name of a variable that is set and is probably a misspelling of one of `names`, or None."""
    from rapidfuzz.distance import DamerauLevenshtein
    from rapidfuzz.process import extractOne

    known = [one for one, value in env.items() if one not in names and value.strip() and _COMMON.search(one)]
    alike = DamerauLevenshtein.normalized_similarity
    found = (extractOne(name, known, scorer=alike, processor=_provider_part, score_cutoff=_SIMILAR) for name in names)
    return next((one[0] for one in found if one is not None), None)


def _provider_part(name: str) -> str:
    """The part of a variable's name that identifies the provider: `openai` for `OPENAI_API_KEY`."""
    return _COMMON.sub("", name).lower()
