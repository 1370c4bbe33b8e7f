"""Environment variables of targets, API keys above all, and what is missing (SPEC section 6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import structs
from msgspec.structs import replace

from agentv.authoring.fields.decode import OptionsSchema
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, is_empty
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.suite import TargetSpec, Variable
from agentv.model.values.lazy_pattern import lazy_pattern
from agentv.registry.types import ProviderSettings

_ALIKE = 0.75
"""Share of letters in place at which the name of a variable is a misspelt one."""

_COMMON = lazy_pattern(r"_|API|KEYS?$|TOKEN$|SECRET$", re.IGNORECASE)
"""What the names of all keys share, so that it says nothing of whose they are."""


def without_blanks(own: Mapping[str, Node], shape: OptionsSchema, reading: Reading) -> dict[str, Node]:
    """The settings as they are written, but for blank ones that the environment may give: those say nothing."""
    takes = shape.from_environment
    return {key: node for key, node in own.items() if name_of(key, shape) not in takes or not _blank(node, reading)}


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


def still_missing(variables: Iterable[Variable], settings: ProviderSettings) -> tuple[Variable, ...]:
    """The variables, of which none is missing that these settings can do without."""
    spared = settings.spares()
    return tuple(structs.replace(one, missing=False) if one.setting in spared else one for one in variables)


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
            reading.report.add(_missing(spec, variable, reading.scope.env, severity))
        for unset in spec.unset:
            reading.report.add(replace(unset, severity=severity))


def _missing(spec: TargetSpec, variable: Variable, env: Mapping[str, str], severity: Severity) -> Diagnostic:
    hint = how_to_set(variable)
    notes = tuple(_notes(variable, {**env, **spec.env}, in_file=spec.span is not None))
    if variable.secret:
        return Diagnostic("no-api-key", f"target '{spec.name}' needs an API key", spec.span, severity, hint, notes)
    message = f"target '{spec.name}' needs '{variable.setting}'"
    return Diagnostic("missing-key", message, spec.span, severity, hint, notes)


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

    for name in names:
        suggestion = _whose(name)
        alike = {
            one: DamerauLevenshtein.normalized_similarity(_whose(one), suggestion)
            for one, value in env.items()
            if one not in names and value.strip() and _COMMON.search(one)
        }
        best = max(alike, key=lambda one: alike[one], default=None)
        if best is not None and alike[best] >= _ALIKE:
            return best
    return None


def _whose(name: str) -> str:
    """`OPENAI_API_KEY` → `openai`."""
    return _COMMON.sub("", name).lower()
