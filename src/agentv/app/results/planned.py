"""Numbers of cases and trials that a run was to do, out of its `run.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agentv.model.run.summary import PartialRun
from agentv.model.values.values import Json, JsonObject, objects_in
from agentv.store.files.encoding import decodable
from agentv.store.totals.summary import PlannedCounts


def planned_counts(record: JsonObject) -> PlannedCounts:
    """What was planned; 0 where the record does not say it."""
    planned, settings = record.get("planned"), record.get("settings")
    found = planned if isinstance(planned, Mapping) else {}
    suites = objects_in(record.get("suites"))
    partial = partial_in(record)
    selected = isinstance(settings, Mapping) and settings.get("last_failed")  # perhaps only on one of the targets
    return PlannedCounts(
        cases=_number(found.get("cases")),
        trials=_number(found.get("trials")),
        targets=() if selected else tuple(dict.fromkeys(name for one in suites for name in _rivals(one))),
        several=any(_several(one) for one in suites),
        drawn_from=partial.of if partial is not None and partial.why == ("sample",) else 0,
    )


def partial_in(record: JsonObject) -> PartialRun | None:
    """Which part of the suites ran; None: all of them, or the record does not say it."""
    found = record.get("partial")
    try:
        return None if found is None else msgspec.convert(found, decodable(PartialRun))
    except msgspec.ValidationError:
        return None


def _several(suite: Mapping[str, Any]) -> bool:
    return any(len(objects_in(suite.get(key))) > 1 for key in ("targets", "prompts", "variants"))


def _rivals(suite: Mapping[str, Any]) -> Iterator[str]:
    """The targets of a suite that has several: each case runs on all of them."""
    targets = objects_in(suite.get("targets"))
    if len(targets) > 1:
        yield from (str(one["name"]) for one in targets if "name" in one)


def _number(found: Json) -> int:
    return found if isinstance(found, int) else 0
