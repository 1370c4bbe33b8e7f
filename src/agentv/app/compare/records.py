"""Facts from `run.json` that a comparison needs: planned counts, and settings that may explain a difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv.model.run.matrix import Dimension
from agentv.model.values.values import JsonObject, objects_in


def differences(base: JsonObject, candidate: JsonObject) -> Iterator[str]:
    """Differences between the runs as sentences, without line ends; names are not escaped."""
    for what, of in (("judge", _judges), ("agentv", _version)):
        before, after = of(base), of(candidate)
        if before != after:
            yield f"the {what} differs: {before} → {after}"


def planned_cases(record: JsonObject) -> int:
    """Number of planned cases, counted once for each target and prompt; 0 if unknown."""
    planned = record.get("planned")
    cases = planned.get("cases") if isinstance(planned, Mapping) else None
    return cases if isinstance(cases, int) else 0


def planned_names(record: JsonObject, by: Dimension) -> tuple[str, ...]:
    """The targets, prompts or variants of a run, in the order in which its suites have them."""
    keys: dict[Dimension, tuple[str, str]] = {"target": ("targets", "name"), "prompt": ("prompts", "id")}
    listed, name = keys.get(by, ("variants", "name"))
    found = (one for suite in objects_in(record.get("suites")) for one in objects_in(suite.get(listed)))
    return tuple(dict.fromkeys(str(one[name]) for one in found if name in one))


def _judges(record: JsonObject) -> str:
    """The judge that was forced, else those of the suites."""
    settings = record.get("settings")
    forced = settings.get("judge") if isinstance(settings, Mapping) else None
    named = [forced] if forced else [suite.get("judge") for suite in objects_in(record.get("suites"))]
    return ", ".join(dict.fromkeys(str(name) for name in named if name)) or "none named"


def _version(record: JsonObject) -> str:
    return str(record.get("agentv") or "unknown")
