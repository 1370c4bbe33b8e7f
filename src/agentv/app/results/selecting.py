"""Selection of a stored run's trials, and of all answers to the same cases side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fnmatch import fnmatchcase
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.compare.gathering import cases_of, in_order_of_run
from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.cases import disagree
from agentv.model.run.matrix import Counts
from agentv.model.run.row import Row
from agentv.model.run.runs import CaseAnswers, Place, Selection, SideBySide
from agentv.model.run.trial import Status, TrialResult
from agentv.store.rows.reading import FileOrder, places_in_order
from agentv.store.totals.tally import STATUSES

_MAX_NAMES = 10_000
"""Maximum number of names to search for a misspelt one."""

_FLAGS = {"cases": "--case", "suites": "--suite", "targets": "--target", "tags": "--tag"}
_FAILURES_FIRST: dict[Status, int] = {"failed": 0, "errored": 0, "skipped": 1, "shown": 2, "passed": 3}
_LAST = (b"\xff" * 32, 0)
"""Sorts after any row."""


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
    """Return the trials of a run that match a selection, in the order of the eval files.

    Args:
        run: the run.
        selection: of its trials.
        limit: maximum number of trials; None: all.
        failures_first: sort failed and errored trials first and passed ones last.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    counts: Counter[Status] = Counter()

    def wanted() -> Iterator[tuple[int, Row]]:
        for place, row in _named_rows(run, selection):
            if not selection.statuses or row.status in selection.statuses:
                counts[row.status] += 1
                yield place, row

    ranks = _FAILURES_FIRST if failures_first else {}
    places = places_in_order(wanted(), run.record, lambda row: ranks.get(row.status, 0))[:limit]
    by_status = Counts(counts.total(), *(counts[status] for status in STATUSES))
    return SelectedTrials(replace(run, places=places), by_status, len(places))


def _named_rows(run: StoredRun, selection: Selection) -> Iterator[tuple[int, Row]]:
    """Yield the rows that match the names of a selection, each after the byte offset of its line.

    Raises:
        UsageError: after the last row, if one of the names, or their combination, matches nothing in the run.
        StoreError: a row cannot be read.
    """
    given = {kind: patterns for kind in _FLAGS if (patterns := getattr(selection, kind))}
    unused = {(kind, pattern): None for kind, patterns in given.items() for pattern in patterns}
    names_in_run: dict[str, dict[str, None]] = {kind: {} for kind in given}
    chosen = False
    for place, row in run.rows():
        names = {"cases": (row.test_id,), "suites": (row.suite,), "targets": (row.target,), "tags": row.tags}
        matches = True
        for kind, patterns in given.items():
            if len(names_in_run[kind]) < _MAX_NAMES:
                names_in_run[kind] |= dict.fromkeys(names[kind])
            used = [one for one in patterns if any(_matches(name, one) for name in names[kind])]
            for one in used:
                unused.pop((kind, one), None)
            matches = matches and bool(used)
        if matches:
            chosen = True
            yield place, row
    # a name that matches nothing is an error, even if other names match
    hint = None
    if unused:
        kind, name = next(iter(unused))
        what, hint = f"{_FLAGS[kind]} '{name}'", did_you_mean(name, names_in_run[kind])
    elif given and not chosen:
        parts = (" or ".join(f"{_FLAGS[kind]} '{name}'" for name in names) for kind, names in given.items())
        what = " and ".join(parts)
    else:
        return
    raise UsageError(f"no trial of the run {run.run_id} matches {what}", hint)


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)  # an id such as `a[locale=de]` is also a pattern


def side_by_side(
    run: StoredRun, selection: Selection, limit: int | None = None, *, different: bool = False
) -> SideBySide:
    """Return cases of a run with all their answers, in the order of the eval files.

    Args:
        run: the run.
        selection: names select trials; statuses select cases with such a trial, which are shown with all answers.
        limit: maximum number of cases; None: all.
        different: select only cases whose verdicts disagree between columns.

    Raises:
        UsageError: a given name does not occur in the run.
        StoreError: its rows cannot be read, or one was changed.
    """
    order = FileOrder(run.record)
    firsts: dict[tuple[str, str], tuple[bytes, int]] = {}
    with_status: set[tuple[str, str]] = set()
    for place, row in _named_rows(run, selection):
        name = row.test_id, row.suite
        firsts[name] = min((order.key(row), place), firsts.get(name, _LAST))
        if not selection.statuses or row.status in selection.statuses:
            with_status.add(name)
    matching = sorted(with_status, key=firsts.__getitem__)
    if different:
        disagreeing = _disagreeing(_named_rows(run, selection))
        matching = [name for name in matching if name in disagreeing]
    wanted = set(matching[:limit])
    places = [place for place, row in _named_rows(run, selection) if (row.test_id, row.suite) in wanted]
    found: dict[tuple[str, str, str], dict[Place, list[TrialResult]]] = {}
    for result in replace(run, places=places).results():
        trial = result.trial
        answers = found.setdefault((trial.suite.name, trial.suite.path, trial.case.id), {})
        answers.setdefault((trial.target.name, trial.case.prompt_id, trial.variant_name), []).append(result)
    sample = attrgetter("trial.sample")
    cases = [
        CaseAnswers(*key, {place: tuple(sorted(of, key=sample)) for place, of in answers.items()})
        for key, answers in sorted(found.items(), key=lambda one: (firsts[one[0][2], one[0][0]], one[0][1]))
    ]
    used = [place for case in cases for place in case.answers]
    return SideBySide(
        tuple(cases),
        len(matching),
        tuple(name for name in in_order_of_run(run.record, "target", (place[0] for place in used)) if name is not None),
        in_order_of_run(run.record, "prompt", (place[1] for place in used)),
        in_order_of_run(run.record, "variant", (place[2] for place in used)),
    )


def _disagreeing(rows: Iterator[tuple[int, Row]]) -> set[tuple[str, str]]:
    """Return (id, suite) of the cases whose verdicts disagree between columns."""
    cases = cases_of(rows)
    verdicts: dict[tuple[str, str, str | None], set[Status]] = defaultdict(set)
    for number in range(len(cases)):
        place = cases.place(number)
        verdicts[cases.case_id(number), place.suite, place.path].add(cases.status(number))
    return {(case_id, suite) for (case_id, suite, _), of_case in verdicts.items() if disagree(of_case)}
