"""Runs with an open directory and journal, as `start`, `drive` and `finish` get them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentv.app.planning.answer_sources import answer_sources
from agentv.app.planning.preparation import prepare
from agentv.app.running.start import OpenRun, opened_run
from agentv.app.settings import EvalSettings
from agentv.app.wiring import redactor_for
from agentv.model.run.events import Event
from agentv.store.files.directory import RunDirectory
from agentv.store.journal.journal import Journal
from doubles.loading import repository
from doubles.run_contexts import FixedClock


@dataclass
class OpenedRun:
    """An open run and the events sent to its sink."""

    run: OpenRun
    journal: Journal
    events: list[Event]

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def lines(self, name: str) -> list[str]:
        return (self.run.directory.path / name).read_text(encoding="utf-8").splitlines()


@contextmanager
def open_run(project: Path, suite: str, **settings: Any) -> Iterator[OpenedRun]:
    """Open a run of one suite in the directory `run`: a new one, or with `resume` the existing one."""
    repository(project, {"a.eval.yaml": suite})
    prepared = prepare(EvalSettings(paths=(str(project / "a.eval.yaml"),), process_env={}, **settings))
    redactor, place = redactor_for(prepared.suites), project / "run"
    directory = (
        RunDirectory.open(place, redactor=redactor)
        if place.exists()
        else RunDirectory.create(project, FixedClock().utc(), out=place, redactor=redactor)
    )
    events: list[Event] = []
    with answer_sources(prepared) as sources, directory:
        run = opened_run(prepared, directory, sources, events.append)
        with run.journal() as journal:
            yield OpenedRun(run, journal, events)
