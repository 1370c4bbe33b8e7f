"""Failures of a run, grouped by cause. Every report uses these groups.

A trial belongs to one group. The cause of an errored trial is its error, that of a failed trial is the first check that
decided against it, and that of a trial that did not run is the reason for it. Details that differ from trial to trial,
such as request ids and durations, do not separate groups. If there are more than `FEW` causes, those of a single case
are merged by assertion, or by the type of the assertion.
"""

from __future__ import annotations

import re
from array import array
from bisect import insort
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Literal

from msgspec import Struct, field

from agentv.model.run.summary import NOT_DRAWN
from agentv.model.run.trial import TrialResult
from agentv.model.run.verdict import counts, passes_gate
from agentv.model.values.formatting import ELLIPSIS, shorten
from agentv.model.values.hashes import NumberedHashes, text_hash
from agentv.model.values.values import lazy_pattern
from agentv.reports.run.trial_view import LONGEST, TrialView, check, findings_of, low_finding, place_of, trial_view

MEMBERS = 50
"""Trials of a group that are kept; all are counted."""

FEW = 20
"""Number of causes above which those of a single case are merged."""

MOST_CAUSES = 1000
"""Causes that are distinguished; later ones are merged by assertion type or code, so that memory is bounded."""

NAMES = 20
"""Suites and targets of a group that are named."""

FailureStatus = Literal["errored", "failed", "skipped"]

CASE_FAILED = "case-failed"
"""Code of a graded answer that is not good enough. It is no error in a file, so it is not in the catalogue."""


class FailedTrial(Struct, frozen=True):
    """One trial of a group.

    Attributes:
        suite_path: absolute path of the eval file, or empty if the suite has none.
        line: line of the case, or 0 if unknown.
        number: index of the trial in the report, or None if the report has no indices.
    """

    suite: str
    suite_path: str
    test_id: str
    prompt_id: str | None
    target: str
    variant: str | None
    sample: int
    line: int
    number: int | None = None

    @classmethod
    def of(cls, result: TrialResult, line: int = 0, number: int | None = None) -> FailedTrial:
        """Create the entry of a trial."""
        trial, suite, case = result.trial, result.trial.suite, result.trial.case
        names = (suite.name, suite.path, case.id, case.prompt_id, trial.target.name, trial.variant_name)
        return cls(*names, trial.sample, line, number)


class FailureGroup(Struct, frozen=True):
    """Trials that did not pass for the same cause.

    Attributes:
        code: code of the error, or `case-failed` for a failed check.
        cause: one line that describes the cause; untrusted text, to be escaped when shown.
        cases: number of distinct cases.
        trials: number of trials.
        suites, targets: their names, sorted, at most `NAMES`.
        members: the first trials in file order, at most `MEMBERS`.
        example: view of the first trial.
        numbers: indices of all trials of the group in the report, if known.
    """

    status: FailureStatus
    code: str
    cause: str
    cases: int
    trials: int
    suites: tuple[str, ...]
    targets: tuple[str, ...]
    members: tuple[FailedTrial, ...]
    example: TrialView
    numbers: Sequence[int] = ()


class _Cause(Struct, frozen=True):
    """A cause at several levels, from the most specific to the most general.

    Attributes:
        keys: for each level, the key that is the same for equal causes.
        texts: for each level, the description of the cause.
    """

    status: FailureStatus
    code: str
    keys: tuple[str, ...]
    texts: tuple[str, ...]


_Member = tuple[tuple[str | int, ...], FailedTrial]
"""Sort key of a trial by file order, and the trial."""

_order = itemgetter(0)


class _Collected(Struct):
    """The trials of one cause, collected so far."""

    cause: _Cause
    level: int
    example: TrialView
    text: str
    trials: int = 0
    cases: NumberedHashes = field(default_factory=NumberedHashes)
    suites: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    members: list[_Member] = field(default_factory=list)
    numbers: array[int] = field(default_factory=lambda: array("I"))

    def add(self, result: TrialResult, cause: _Cause, number: int | None) -> None:
        file, line = place_of(result.trial)
        trial = FailedTrial.of(result, line, number)
        names = (trial.test_id, trial.prompt_id or "", trial.target, trial.variant or "")
        order = (file, line, *names, trial.sample)
        member = (order, trial)
        self.trials += 1
        if number is not None:
            self.numbers.append(number)
        self.cases.number(_case_hash(trial))
        self.suites.add(trial.suite)
        self.targets.add(trial.target)
        if cause.texts[self.level] != self.text:
            self.text = self.cause.keys[self.level]  # only the part that they have in common
        if len(self.members) == MEMBERS and order >= _order(self.members[-1]):
            return
        insort(self.members, member, key=_order)
        if self.members[0] is member:
            self.example = _view(result)
        del self.members[MEMBERS:]

    def order(self) -> tuple[object, ...]:
        rank = ("errored", "failed", "skipped").index(self.cause.status)
        return (rank == 2, -len(self.cases), -self.trials, rank, _order(self.members[0]))

    def merged_at(self, level: int, others: Iterable[_Collected]) -> _Collected:
        """This group and others, each of a single case, merged into one group of a more general cause."""
        parts = sorted((self, *others), key=lambda one: _order(one.members[0]))
        merged = _Collected(self.cause, level, parts[0].example, self.cause.texts[level])
        for one in parts:
            merged.trials += one.trials
            merged.suites |= one.suites
            merged.targets |= one.targets
            merged.members += one.members
            merged.numbers += one.numbers
            merged.cases.number(_case_hash(one.members[0][1]))  # each group has one case
        merged.members.sort(key=_order)
        del merged.members[MEMBERS:]
        return merged

    def group(self) -> FailureGroup:
        return FailureGroup(
            self.cause.status,
            self.cause.code,
            self.text,
            len(self.cases),
            self.trials,
            tuple(sorted(self.suites)[:NAMES]),
            tuple(sorted(self.targets)[:NAMES]),
            tuple(trial for _, trial in self.members),
            self.example,
            self.numbers,
        )


def _case_hash(trial: FailedTrial) -> int:
    return text_hash(f"{trial.suite_path}\0{trial.suite}\0{trial.test_id}")


class FailureGroups(Struct):
    """The failures of a run, collected by cause."""

    _found: dict[tuple[str, str, int, str], _Collected] = {}

    def add(self, result: TrialResult, number: int | None = None) -> None:
        """Add a trial; trials that passed or are only shown are ignored.

        Args:
            result: result of the trial.
            number: index of the trial in the report.
        """
        cause = _cause(result)
        if cause is None:
            return
        level = 0 if len(self._found) < MOST_CAUSES else len(cause.keys) - 1
        key = (cause.status, cause.code, 0, cause.keys[0])
        if key not in self._found:
            key = (cause.status, cause.code, level, cause.keys[level])
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _Collected(cause, level, _view(result), cause.texts[level])
        found.add(result, cause, number)

    def groups(self) -> list[FailureGroup]:
        """The groups, by descending number of cases; trials that did not run come last."""
        found, level = [*self._found.values()], 1
        # if there are many groups, merge those of single cases by a more general cause
        while len(found) > FEW and (single := [one for one in found if _is_single(one, level)]):
            alike: dict[tuple[str, str, str], list[_Collected]] = {}
            for one in single:
                alike.setdefault((one.cause.status, one.cause.code, one.cause.keys[level]), []).append(one)
            merged = [first.merged_at(level, others) if others else first for first, *others in alike.values()]
            found = [*(one for one in found if not _is_single(one, level)), *merged]
            level += 1
        return [one.group() for one in sorted(found, key=_Collected.order)]


def _is_single(one: _Collected, level: int) -> bool:
    return len(one.cases) == 1 and level < len(one.cause.keys)


def _view(result: TrialResult) -> TrialView:
    status = result.status
    return trial_view("noted" if status == "passed" else status, result)


def _cause(result: TrialResult) -> _Cause | None:
    """The cause of a trial that did not pass; None if it passed, is only shown, or is counted elsewhere."""
    if result.status == "failed":
        return _check_cause(result)
    if result.status == "errored":
        code, message = "internal-error", "no reason"
        if result.error is not None:
            code, message = result.error.code, result.error.message
        errors = (score.grade.error for score in result.scores if counts(score))
        error = next((one for one in errors if one is not None), None)
        if error is not None:  # without the assertion's name, since many cases may have the same error
            code, message = error.code, error.message
    elif result.status == "skipped" and result.error is not None:
        code, message = result.error.code, result.error.message
        if code.endswith(("target-stopped", NOT_DRAWN)):  # which are counted elsewhere
            return None
    else:
        return None
    message = shorten(message, LONGEST)
    general = f"{code} (different messages)"
    keys = (f"{code}: {_without_details(message, result.trial.case.id)}", general)
    return _Cause(result.status, code, keys, (f"{code}: {message}", general))


def _check_cause(result: TrialResult) -> _Cause:
    """The first check that decided against a trial: a missed gate, else a failed check, else a low score."""
    counting = [score for score in result.scores if counts(score)]
    gates = (score for score in counting if not passes_gate(score))
    failed = (score for score in counting if not score.grade.passed)
    low = (score for score in counting if score.grade.counted < 1)
    score = next(gates, None) or next(failed, None) or next(low, None) or next(iter(counting), None)
    if score is None:
        text = "no check failed, but the score is too low"
        return _Cause("failed", CASE_FAILED, (text,), (text,))
    finding = next((one for one in findings_of(score) if one.state != "noted"), None) or low_finding(score)
    text = check(finding)
    kind, name = score.entry.shown_type, score.entry.name
    general = f"{kind} (different checks)"
    keys = (_without_details(text, result.trial.case.id), f"{kind}\0{name}", general)
    return _Cause("failed", CASE_FAILED, keys, (text, name, general))


_DETAILS = lazy_pattern(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # UUIDs
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?"  # times
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b"  # hashes
    r"|\b[a-z]+[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{8,}\b"  # request ids
    r"|(?<![\w.-])\d[\d,]*(?:\.\d+)?(?= ?(?:m?s|min|seconds|minutes|tokens|characters|bytes|[kM]?B|%)\b)"
    r"|(?<![\w.-])\d+\.\d+(?![\w.])"
    r"|(?<![\w.-])\d[\d,]{3,}(?![\w.])"
)
"""Details that differ between equal causes. Short integers are not details: status 401 differs from status 500."""


def _without_details(text: str, test_id: str) -> str:
    """The text with details that differ from trial to trial replaced by `…`."""
    bare = _DETAILS.sub(ELLIPSIS, text)
    if len(test_id) > 1 and test_id in bare:
        bare = re.sub(rf"(?<!\w){re.escape(test_id)}(?!\w)", ELLIPSIS, bare)
    return bare
