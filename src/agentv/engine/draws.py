"""Draw cases in random order until their comparison with an earlier run is decided (`--against RUN`).

Cases that depend on each other are drawn together. A result counts only when all cases drawn before it have ended:
trials end in any order, and quick failures would otherwise be seen first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping

from msgspec import Struct, field

from agentv.model.run.trial import Trial, TrialResult
from agentv.stats.samples.betting import PairedBets

CaseId = tuple[str, str, str | None]
"""Suite (its name, or its name and file), case id, and prompt id."""

Bounds = tuple[float, float]


class _Case(Struct):
    """One case to draw.

    Attributes:
        base: lowest and highest possible pass rate in the base run; None if it lacks the case.
        open: keys of the trials that have not ended.
        low, high: number of samples that passed, at least and at most.
    """

    base: Bounds | None
    samples: int = 0
    open: set[str] = field(default_factory=set)
    low: int = 0
    high: int = 0

    @property
    def difference(self) -> Bounds | None:
        """Lowest and highest difference of the pass rates, candidate minus base; None if the base lacks the case."""
        if self.base is None:
            return None
        return self.low / self.samples - self.base[1], self.high / self.samples - self.base[0]


class _Group(Struct):
    """Cases that are drawn together."""

    number: bytes
    trials: list[Trial] = field(default_factory=list)
    cases: dict[CaseId, _Case] = field(default_factory=dict)

    @property
    def paired(self) -> int:
        return sum(case.base is not None for case in self.cases.values())


class Draws:
    """The trials of a run in the order in which their cases are drawn, and the comparison so far.

    Attributes:
        trials: all trials, in that order.
        base: id of the base run, with which they are compared.
        seed: seed of the order.
        cases, unpaired: number of cases that the base also has, and of those that it lacks.
        drawn, errored: number of cases counted so far, and of those whose difference is known only within bounds.
    """

    def __init__(
        self,
        trials: Iterable[tuple[CaseId, Hashable, Trial]],
        base: Mapping[CaseId, Bounds],
        bets: PairedBets,
        base_id: str,
        seed: int,
    ) -> None:
        """Put the trials in random order.

        Args:
            trials: each with its case and the key of its group of dependent cases.
            base: lowest and highest possible pass rate of each case of the base run.
            bets: the test that receives the differences.
            base_id: id of the base run.
            seed: seed of the order; the same one gives the same order.
        """
        self.base = base_id
        self.seed = seed
        self.bets = bets
        self._groups = _groups(trials, base, seed)
        cases = (case for group in self._groups for case in group.cases.values())
        self._case_of = {key: case for case in cases for key in case.open}
        self._next = 0
        self._largest_group = max((group.paired for group in self._groups), default=0)
        self.trials = [trial for group in self._groups for trial in group.trials]
        self.cases = sum(group.paired for group in self._groups)
        self.unpaired = sum(len(group.cases) for group in self._groups) - self.cases
        self.drawn = self.errored = 0

    @property
    def decided(self) -> bool:
        """Whether no more cases are needed."""
        return self.bets.claim is not None

    @property
    def pending(self) -> list[Trial]:
        """Trials that may still be needed; none once the comparison is decided."""
        return [] if self.decided else self.trials

    def add(self, result: TrialResult) -> bool:
        """Add the result of a trial; return whether the comparison is decided."""
        case = self._case_of.get(result.trial.key)
        if case is not None and result.trial.key in case.open:
            case.open.discard(result.trial.key)
            case.low += result.status == "passed"
            case.high += result.status != "failed"
        while self._next < len(self._groups) and not self.decided:
            group = self._groups[self._next]
            if any(case.open for case in group.cases.values()):
                break  # later groups count only when this one has ended
            self._next += 1
            differences = [found for case in group.cases.values() if (found := case.difference) is not None]
            if differences:
                self.drawn += len(differences)
                self.errored += sum(low != high for low, high in differences)
                low, high = (sum(one[side] for one in differences) / self._largest_group for side in (0, 1))
                self.bets.add(low, high, len(differences) / self._largest_group)
        return self.decided


def _groups(trials: Iterable[tuple[CaseId, Hashable, Trial]], base: Mapping[CaseId, Bounds], seed: int) -> list[_Group]:
    found: dict[Hashable, _Group] = {}
    for identity, group_key, trial in trials:
        group = found.get(group_key)
        if group is None:
            # a hash, so that adding cases to a file does not change the order of the others
            facts = f"drawn\0{seed}\0{group_key!r}".encode(errors="surrogatepass")
            group = found[group_key] = _Group(hashlib.blake2b(facts, digest_size=16).digest())
        group.trials.append(trial)
        case = group.cases.setdefault(identity, _Case(base.get(identity)))
        case.samples += 1
        case.open.add(trial.key)
    return sorted(found.values(), key=lambda group: group.number)


class Groups(Struct):
    """Groups of items that are joined directly or indirectly (union-find)."""

    _leader: dict[Hashable, Hashable] = {}

    def of(self, one: Hashable) -> Hashable:
        """Return the representative of the group that an item belongs to."""
        while (above := self._leader.setdefault(one, one)) != one:
            self._leader[one] = self._leader[above]
            one = self._leader[one]
        return one

    def join(self, one: Hashable, others: Iterable[Hashable]) -> None:
        """Merge the groups of all these items."""
        for other in others:
            self._leader[self.of(other)] = self.of(one)
