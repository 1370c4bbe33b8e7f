"""The totals of a run that lies on disk."""

from __future__ import annotations

import msgspec

from agentv.app.results.stored import StoredRun
from agentv.errors import StoreError
from agentv.model.summary import Summary
from agentv.model.values import JsonObject
from agentv.store.directory import SUMMARY
from agentv.store.reading import read_rows
from agentv.store.summary import Planned, summarize


def totals_of(run: StoredRun) -> Summary:
    """What its `summary.json` says; of a run that has none, because it was killed or goes on, what its rows say.

    Raises:
        StoreError: they cannot be read.
    """
    if run.summary is None:
        return summarize(read_rows(run.index), run_id=run.run_id, planned=_planned(run.record), duration_ms=0.0)
    try:
        return msgspec.convert(run.summary, Summary)
    except msgspec.ValidationError as error:
        raise StoreError(f"{run.path / SUMMARY} is not what agentv wrote: {error}") from error


def _planned(record: JsonObject) -> Planned:
    """How much there was to do, as `run.json` says it; a killed run can never look like a whole one."""
    found = record.get("planned")
    try:
        return msgspec.convert(found or {}, Planned)
    except msgspec.ValidationError:
        return Planned()
