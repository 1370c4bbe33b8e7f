"""Cases whose samples end where they are decided, out of rows (SPEC section 10).

Imported where there are some: most runs do not pay for it.
"""

from __future__ import annotations

from array import array
from collections import Counter

from agentv.model.run.trial import EarlyCase, EarlyStops, Why
from agentv.stats.comparison.rule import kept_of
from agentv.stats.samples.deciding import evidence_for
from agentv.store.totals.tally import TalliedCase

LISTED = 1000
"""Cases that the summary holds one by one."""


class EarlyTally:
    """Takes in cases, and holds a bounded number of them.

    Attributes:
        spared: samples that were not needed.
    """

    def __init__(self) -> None:
        self.spared = 0
        self._alpha = 0.0
        self._whys: Counter[Why | None] = Counter()
        self._samples = 0
        self._evidence = array("d")
        self._found = 0
        self._listed: list[EarlyCase] = []

    def add(self, case: TalliedCase) -> None:
        """Add a case; one whose samples do not end early is skipped."""
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

    def found(self) -> EarlyStops | None:
        """The totals of the early stops; None if there was none."""
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
            confirmed=kept_of(self._evidence, cases, self._alpha) if self._alpha else 0,
            by_gate=reasons["gate"],
        )

    def _cut(self) -> None:
        self._listed.sort(key=_rank)
        del self._listed[LISTED:]


def _listed(case: TalliedCase) -> EarlyCase | None:
    """A case that failed or is undecided; the others passed surely, were not judged, or are not at their end."""
    counted, early, profile = case.samples, case.early, case.profile
    if counted is None or early is None or early.stopped is None or case.status not in ("passed", "failed"):
        return None
    if case.status == "passed" and early.stopped.why != "undecided":
        return None
    named = (counted.test_id, counted.suite, counted.target, counted.prompt_id)
    return EarlyCase(*named, case.status, profile.alpha or 0.0, early.stopped)


def _rank(case: EarlyCase) -> tuple[object, ...]:
    """Failed ones come first, then the worst; what is alike in that by its name, whatever ended first."""
    named = (case.suite, case.test_id, case.prompt_id or "", case.target)
    return (case.status, case.stopped.passed / case.stopped.samples, *named)
