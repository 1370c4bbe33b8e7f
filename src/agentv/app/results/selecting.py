"""The trials of a stored run that a person chooses, and all answers to the same cases side by side."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.compare.gathering import cases_of, in_order_of_run
from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.cases import disagree
from agentv.model.run.matrix import Counts
from agentv.model.run.runs import CaseAnswers, Place, Selection, SideBySide
from agentv.model.run.trial import Status, TrialResult
from agentv.store.files.directory import INDEX, is_being_written
from agentv.store.files.lines import lines_at
from agentv.store.index import RowIndex
from agentv.store.journal.verification import check_rows
from agentv.store.rows.reading import row_in

_GUESSED_FROM = 10_000
"""Names that a slip of the pen is held against."""

_Kind = Literal["cases", "suites", "targets", "tags"]
_OPTIONS: dict[str, _Kind] = {"--case": "cases", "--suite": "suites", "--target": "targets", "--tag": "tags"}
"""Option of the command line → the field of a selection."""


class SelectedTrials(Struct, frozen=True):
    """Trials of a run.

    Attributes:
        run: the run, restricted to the selected trials.
        counts: number of matching trials by outcome, without the limit.
        wanted: number of trials in `run`.
    """

    run: StoredRun
    counts: Counts
    wanted: int


def choose(
    run: StoredRun, selection: Selection, limit: int | None = None, *, failures_first: bool = False
) -> SelectedTrials:
    """The trials of a run that match a selection, at most `limit`, in the order of the eval files.

    Args:
        run: the run.
        selection: of its trials.
        limit: at most so many; None: all.
        failures_first: those that failed or errored come first, and those that passed last.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    with checked_index(run, selection) as index:
        counts = index.counts(selection)
        places = array("q", index.places(selection, limit, failures_first=failures_first))
    return SelectedTrials(replace(run, places=places), counts, len(places))


@contextmanager
def checked_index(run: StoredRun, selection: Selection) -> Iterator[RowIndex]:
    """The index of a run in which everything that a selection names occurs.

    Raises:
        UsageError, StoreError: as `choose`.
    """
    there = RowIndex.there(run.path)
    if there is None:
        check_rows(run.path)
    else:
        there.close()
    with RowIndex.of(run.path, keep=not is_being_written(run.path)) as index:
        # a name that nothing in the run has is refused, beside others that something has too
        named = [(flag, kind, names) for flag, kind in _OPTIONS.items() if (names := getattr(selection, kind))]
        for flag, kind, names in named:
            for name in names:
                only = Selection(**{kind: (name,)})
                if not index.counts(only).total:
                    message = f"no trial of the run {run.run_id} matches {flag} '{name}'"
                    raise UsageError(message, _nearest(index, only))
        if named and not index.counts(replace(selection, statuses=())).total:
            described = " and ".join(" or ".join(f"{flag} '{name}'" for name in names) for flag, _, names in named)
            raise UsageError(f"no trial of the run {run.run_id} matches {described}", _nearest(index, selection))
        yield index


def bytes_to_index(run: StoredRun) -> int:
    """Number of bytes that `choose` must read first; 0 if they are indexed."""
    index = RowIndex.there(run.path)
    if index is None:
        return run.index.stat().st_size if run.index.exists() else 0
    index.close()
    return 0


def _nearest(index: RowIndex, selection: Selection) -> str | None:
    """What was meant by a name that nothing has, as far as that can be guessed."""
    for kind in _OPTIONS.values():
        there = index.names(kind, _GUESSED_FROM)
        for name in getattr(selection, kind):
            if name not in there and (hint := did_you_mean(name, there)):
                return hint
    return None


def side_by_side(
    run: StoredRun, selection: Selection, limit: int | None = None, *, different: bool = False
) -> SideBySide:
    """Cases of a run, at most `limit`, with all their answers, in the order of the eval files.

    `different` selects cases whose verdicts disagree between columns. Statuses select cases: those with such a trial,
    of which every answer is shown. Names select trials.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    with checked_index(run, selection) as index:
        matching = list(index.case_names(selection))
        if different:
            named = replace(selection, statuses=())
            matching = _different(run, matching, sorted(index.places(named)))
        wanted = set(matching[:limit])
        named = replace(selection, statuses=(), cases=tuple(dict.fromkeys(case_id for case_id, _ in wanted)))
        places = sorted(index.places(named)) if wanted else []
    found: dict[tuple[str, str, str], dict[Place, list[TrialResult]]] = {}
    for result in replace(run, places=places).results():
        trial = result.trial
        if (trial.case.id, trial.suite.name) in wanted:
            answers = found.setdefault((trial.suite.name, trial.suite.path, trial.case.id), {})
            answers.setdefault((trial.target.name, trial.case.prompt_id, trial.variant_name), []).append(result)
    order = {name: number for number, name in enumerate(matching)}
    sample = attrgetter("trial.sample")
    cases = [
        CaseAnswers(*key, {place: tuple(sorted(of, key=sample)) for place, of in answers.items()})
        for key, answers in sorted(found.items(), key=lambda one: (order[one[0][2], one[0][0]], one[0][1]))
    ]
    used = [place for case in cases for place in case.answers]
    return SideBySide(
        tuple(cases),
        len(matching),
        tuple(name for name in in_order_of_run(run.record, "target", (place[0] for place in used)) if name is not None),
        in_order_of_run(run.record, "prompt", (place[1] for place in used)),
        in_order_of_run(run.record, "variant", (place[2] for place in used)),
    )


def _different(run: StoredRun, names: list[tuple[str, str]], places: Sequence[int]) -> list[tuple[str, str]]:
    """Ids and suites of the cases whose columns disagree."""
    cases = cases_of((place, row_in(line)) for place, line in lines_at(run.path / INDEX, places))
    verdicts: dict[tuple[str, str, str | None], set[Status]] = defaultdict(set)
    for number in range(len(cases)):
        of = cases.place(number)
        verdicts[cases.case_id(number), of.suite, of.path].add(cases.status(number))
    found = {(case_id, suite) for (case_id, suite, _), of_case in verdicts.items() if disagree(of_case)}
    return [name for name in names if name in found]
