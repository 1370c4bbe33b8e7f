"""Counts of distinct cases, and totals of cases with sampling until decided.

A case with several targets, prompts or variants counts once, with its worst status: it passes if all of them pass.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.model.run.matrix import Counts, GroupTotals
from agentv.model.run.summary import Summary
from agentv.model.run.trial import EarlyCase, EarlyStops, Status, Why
from agentv.model.values.hashes import NumberedHashes
from agentv.stats.rule import confirmed_count
from agentv.stats.samples.deciding import evidence_for
from agentv.store.totals.tally import STATUSES, TalliedCase, counts_of

_WORST_FIRST: tuple[Status, ...] = ("errored", "failed", "skipped", "shown", "passed")
Planned = Mapping[str, Mapping[str, int]]

_RANKS = {status: rank for rank, status in enumerate(_WORST_FIRST)}


_ABSENT = 255


class _Cases(Struct):
    """The cases of one group: number → worst status so far, in one byte each.

    Only numbers between the first and the last of the group take memory.
    """

    _first: int = 0
    _ranks: bytearray = field(default_factory=bytearray)

    def add(self, number: int, rank: int) -> None:
        if not self._ranks:
            self._first = number
        elif number < self._first:
            self._ranks[:0] = bytes((_ABSENT,)) * (self._first - number)
            self._first = number
        place = number - self._first
        if place >= len(self._ranks):
            self._ranks.extend(bytes((_ABSENT,)) * (place + 1 - len(self._ranks)))
        self._ranks[place] = min(self._ranks[place], rank)

    def __len__(self) -> int:
        return len(self._ranks) - self._ranks.count(_ABSENT)

    def counts(self, planned: int) -> Counts:
        return counts_of([self._ranks.count(_RANKS[status]) for status in STATUSES], planned)


class DistinctCases:
    """Counts of distinct cases in a run and in its groups."""

    def __init__(self, cases: Iterable[TalliedCase]) -> None:
        self._groups: dict[tuple[str, str], _Cases] = defaultdict(_Cases)
        self._numbers = NumberedHashes()
        self._of_tags: dict[str, NumberedHashes] = defaultdict(NumberedHashes)
        for case in cases:
            self._add(case)

    def _add(self, case: TalliedCase) -> None:
        """Add the result of a case with one target, prompt and variant."""
        profile, rank, number = case.profile, _RANKS[case.status], self._numbers.number(case.case)
        named = (("", ""), ("by_suite", profile.suite), ("by_target", profile.target), ("by_prompt", profile.prompt))
        for kind, name in (*named, ("by_variant", profile.variant)):
            if name is not None:
                self._groups[kind, name].add(number, rank)
        for tag in profile.tags:  # there may be many tags with few cases each, so each has its own numbers
            self._groups["by_tag", tag].add(self._of_tags[tag].number(case.case), rank)

    def applied_to(self, summary: Summary, planned: Planned, missing: int) -> Summary:
        """Return the summary with counts of distinct cases.

        Args:
            summary: summary of the run.
            planned: kind of group → name → number of distinct cases; the whole run has two empty keys.
            missing: maximum number of results of cases without a row: that many cases that seem to have passed did not.
        """
        of_run = planned.get("", {}).get("", 0)
        whole = self._groups["", ""].counts(of_run)
        unknown = min(whole.passed, max(0, missing - max(0, of_run - len(self._groups["", ""]))))
        whole = replace(whole, passed=whole.passed - unknown, skipped=whole.skipped + unknown)
        by_suite = self._applied_to_groups("by_suite", summary.by_suite, planned)
        if len(by_suite) == 1:  # with several suites, it is unknown which of them lacks results
            by_suite = {name: replace(group, cases=whole) for name, group in by_suite.items()}
        return replace(
            summary,
            cases=whole,
            rule_judged=None if summary.rule_pass_rate is None else summary.cases.passed + summary.cases.failed,
            by_suite=by_suite,
            by_target=self._applied_to_groups("by_target", summary.by_target, planned),
            by_prompt=self._applied_to_groups("by_prompt", summary.by_prompt, planned),
            by_variant=self._applied_to_groups("by_variant", summary.by_variant, planned),
            by_tag=self._applied_to_groups("by_tag", summary.by_tag, planned),
        )

    def _applied_to_groups(
        self, kind: str, groups: Mapping[str, GroupTotals], planned: Planned
    ) -> dict[str, GroupTotals]:
        numbers = planned.get(kind, {})
        return {
            name: replace(group, cases=self._groups[kind, name].counts(numbers.get(name, 0)))
            for name, group in groups.items()
        }


LISTED = 1000
"""Maximum number of cases listed in the summary."""


class EarlyTally(Struct):
    """Totals of cases with sampling until decided; holds a limited number of the cases.

    Attributes:
        spared: number of samples that were not needed.
    """

    spared: int = 0
    _alpha: float = 0.0
    _whys: Counter[Why | None] = field(default_factory=Counter)
    _samples: int = 0
    _evidence: array[float] = field(default_factory=lambda: array("d"))
    _found: int = 0
    _listed: list[EarlyCase] = []

    def add(self, case: TalliedCase) -> None:
        """Add a case, unless all its samples run anyway."""
        if case.early is None:
            return
        stopped = case.early.stopped
        self._alpha = max(self._alpha, case.profile.alpha or 0.0)
        self._whys[None if stopped is None else stopped.why] += 1
        self._samples += case.early.samples
        if stopped is not None and stopped.side is not None:
            failed = stopped.samples - stopped.passed
            self._evidence.append(evidence_for(stopped.side, stopped.passed, failed, case.profile.threshold))
        if stopped is not None:
            self.spared += max(0, case.profile.repeat - case.early.samples)
        if (listed := _listed(case)) is not None:
            self._found += 1
            self._listed.append(listed)
            if len(self._listed) > 2 * LISTED:
                self._cut()

    def early_stops(self) -> EarlyStops | None:
        """Return the totals, or None if there are no such cases."""
        reasons = self._whys
        if not reasons:
            return None
        self._cut()
        cases = sum(reasons.values())
        return EarlyStops(
            alpha=self._alpha,
            decided=reasons["above"] + reasons["below"] + reasons["gate"],
            undecided=reasons["undecided"],
            samples=self._samples,
            spared=self.spared,
            by_case=tuple(self._listed),
            omitted=self._found - len(self._listed),
            cases=cases,
            confirmed=confirmed_count(self._evidence, cases, self._alpha) if self._alpha else 0,
            by_gate=reasons["gate"],
        )

    def _cut(self) -> None:
        self._listed.sort(key=_rank)
        del self._listed[LISTED:]


def _listed(case: TalliedCase) -> EarlyCase | None:
    """Return the case if it failed or is undecided; None if it passed, was not graded, or still gets samples."""
    counted, early, profile = case.samples, case.early, case.profile
    if counted is None or early is None or early.stopped is None or case.status not in ("passed", "failed"):
        return None
    if case.status == "passed" and early.stopped.why != "undecided":
        return None
    named = (counted.test_id, counted.suite, counted.target, counted.prompt_id)
    return EarlyCase(*named, case.status, profile.alpha or 0.0, early.stopped)


def _rank(case: EarlyCase) -> tuple[object, ...]:
    """Return the sort key of a case: failed ones first, then by ascending pass rate, then by name."""
    named = (case.suite, case.test_id, case.prompt_id or "", case.target)
    return (case.status, case.stopped.passed / case.stopped.samples, *named)
