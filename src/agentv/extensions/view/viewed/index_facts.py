"""Counts and rates over all cases of a run, which its index keeps once the run is over."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agentv.extensions.view.index.case_choice import CaseChoice
from agentv.extensions.view.index.case_index import CaseIndex
from agentv.extensions.view.viewed.rates import AssertionRate, Rate, assertion_rates, rate_of_cases


class IndexFacts(Struct, frozen=True):
    """Counts and rates over all cases, as far as the rows are read.

    Attributes:
        worst: how many cases ended how, each once with the worst of its results; in the order of `STATUSES`.
        distinct: how many cases they are, whatever they run with.
        flaky: how many have samples that disagree.
        scores: of each column of their distribution how many cases passed, and how many failed.
        rate: of all of them.
        assertions: rates of all assertions.
    """

    worst: list[int]
    distinct: int
    flaky: int
    scores: list[tuple[int, int]]
    rate: Rate | None
    assertions: list[AssertionRate]

    def with_cut(self, cut: str | None) -> IndexFacts:
        """These of a run that ended by how its cases ended, so that no interval holds."""
        if cut is None:
            return self
        assertions = [msgspec.structs.replace(one, rate=_cut(one.rate, cut)) for one in self.assertions]
        return msgspec.structs.replace(self, rate=_cut(self.rate, cut), assertions=assertions)


def index_facts(index: CaseIndex) -> IndexFacts:
    """What an index keeps, or else what its tables say."""
    return kept_facts(index) or _computed(index)


def kept_facts(index: CaseIndex) -> IndexFacts | None:
    """What an index keeps; None: it keeps nothing of its rows yet."""
    saved = index.saved(_saved_as(index))
    return None if saved is None else _decode(saved)


def save_facts(index: CaseIndex) -> None:
    """Keep them in an index."""
    index.save(_saved_as(index), msgspec.json.encode(_computed(index)))


_decode = msgspec.json.Decoder(IndexFacts).decode


def _computed(index: CaseIndex) -> IndexFacts:
    totals, grid, every = index.totals, index.grid, CaseChoice()
    return IndexFacts(
        grid.counts(grid.outcomes(every)).by_status,
        totals.distinct(every),
        totals.flaky(),
        totals.scores(),
        rate_of_cases(index, every, sum(index.counts), None),
        assertion_rates(index, None),
    )


def _saved_as(index: CaseIndex) -> str:
    return f"facts {index.read.next_trial}"


def _cut(rate: Rate | None, cut: str) -> Rate | None:
    return None if rate is None else msgspec.structs.replace(rate, interval=None, cut=cut)
