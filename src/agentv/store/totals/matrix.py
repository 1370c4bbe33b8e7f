"""The matrix of targets, prompts and variants of a run, and the activation of skills, computed from rows.

Only imported when needed, because most runs have only one of each.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum

from msgspec.structs import replace

from agentv.model.run.matrix import GroupTotals, GroupUsage, MatrixCell, MatrixGroup, RunMatrix
from agentv.model.run.row import Row
from agentv.model.run.summary import TAG, Activation, Summary
from agentv.stats.intervals.proportion import Query, activation_of
from agentv.stats.samples.distribution import distribution_of
from agentv.store.totals.group_tally import Cell, GroupTally, SpentByCell, merged
from agentv.store.totals.tally import Profile, Tally, case_of

FEWEST_FOR_P95 = 20
"""Minimum number of answers for a 95th percentile; with fewer it would just be the slowest one."""

_DIGITS = 10
_P50, _P95 = 0, 2
"""Indexes in the percentiles of a distribution."""


class MatrixTally:
    """The counts from which the cells of a matrix are computed.

    Args:
        groups: the cases of the run.
        tally: the trials of the run.
        spent: the usage of the run.
    """

    def __init__(self, groups: Iterable[tuple[Profile, GroupTally]], tally: Tally, spent: SpentByCell) -> None:
        self._groups: dict[Cell, list[tuple[Profile, GroupTally]]] = defaultdict(list)
        for profile, group in groups:
            self._groups[cell_of(profile)].append((profile, group))
        self._spent = spent
        self._durations: dict[Cell, array[float]] = defaultdict(lambda: array("f"))
        self._prices: dict[Cell, list[float]] = defaultdict(list)
        for profile, duration_ms, price in tally.answers():
            cell = cell_of(profile)
            self._durations[cell].append(duration_ms)
            if price is not None:
                self._prices[cell].append(price)

    def matrix(self, summary: Summary) -> RunMatrix:
        """Return the matrix without comparisons. Names are sorted, because rows do not have another order.

        Args:
            summary: summary of the run, from which totals of targets, prompts and variants are copied.
        """
        columns = list(zip(*self._groups, strict=True))
        targets, prompts, variants = (sorted(set(names), key=_none_last) for names in columns)
        cells = sorted(self._groups, key=lambda cell: [*map(_none_last, (cell.prompt, cell.target, cell.variant))])
        return RunMatrix(
            targets=tuple(name for name in targets if name is not None),
            prompts=tuple(prompts),
            variants=tuple(variants),
            cells=tuple(MatrixCell(*cell, self._totals([cell]), self._usage([cell])) for cell in cells),
            by_target=self._by(0, targets, summary.by_target),
            by_prompt=self._by(1, prompts, summary.by_prompt),
            by_variant=self._by(2, variants, summary.by_variant),
        )

    def _by(
        self, place: int, names: Collection[str | None], known: Mapping[str, GroupTotals]
    ) -> tuple[MatrixGroup, ...]:
        """Return the groups of the cells by the name at index `place` of each cell."""
        if len(names) < 2:
            return ()
        cells = {name: [cell for cell in self._groups if cell[place] == name] for name in names}
        return tuple(
            MatrixGroup(name, (name and known.get(name)) or self._totals(cells[name]), self._usage(cells[name]))
            for name in names
        )

    def _totals(self, cells: Iterable[Cell]) -> GroupTotals:
        return merged(one for cell in cells for one in self._groups[cell]).totals(0)

    def _usage(self, cells: Collection[Cell]) -> GroupUsage:
        spent = self._spent.of(cells)
        prices = [price for cell in cells for price in self._prices[cell]]
        latency = distribution_of(duration for cell in cells for duration in self._durations[cell])
        answers = 0 if latency is None else latency.count
        percentiles = () if latency is None else tuple(round(one, 1) for one in latency.percentiles)
        return GroupUsage(
            cost_usd=spent.targets.cost_usd,
            judge_cost_usd=spent.judges.cost_usd,
            unpriced_trials=spent.targets.unpriced,
            reused=spent.reused,
            answers=answers,
            priced_answers=len(prices),
            cost_per_answer_usd=round(fsum(prices) / len(prices), _DIGITS) if prices else None,
            latency_ms=percentiles[_P50] if percentiles else None,
            latency_p95_ms=percentiles[_P95] if answers >= FEWEST_FOR_P95 else None,
        )


def cell_of(profile: Profile) -> Cell:
    """Return the cell of a profile."""
    return Cell(profile.target, profile.prompt, profile.variant)


def _none_last(name: str | None) -> tuple[bool, str]:
    return name is None, name or ""


HALF = 0.5
"""Minimum share of its graded samples in which a query must load a skill to count as loading it."""


class ActivationTally:
    """Tally of rows of queries; the last of several rows of one trial counts.

    Attributes:
        cases: the queries, as in `TalliedCase.case`.
    """

    def __init__(self) -> None:
        self.cases: set[int] = set()
        self._queries: dict[tuple[str, str, str], dict[str, dict[int, Sequence[str] | None]]] = defaultdict(dict)
        self._expected: dict[tuple[str, str], str | None] = {}
        self._skills: dict[str, Sequence[str]] = {}

    def add(self, row: Row) -> None:
        """Add a row, unless it has the tag but is not a query."""
        if not {"query", "skill"} <= row.metadata.keys() or row.status == "skipped":
            return
        score = next((one for one in row.scores if one.type == TAG and "loaded" in one.details), None)
        self._expected[row.suite, row.test_id] = row.metadata["skill"]
        if score is not None:
            self.cases.add(case_of(row))
            self._skills[row.suite] = score.details["skills"]
        judged = row.status in ("passed", "failed")
        samples = self._queries[row.suite, row.target, row.variant or ""].setdefault(row.test_id, {})
        samples[row.sample] = score.details["loaded"] if judged and score is not None else None

    def activations(self) -> Iterator[Activation]:
        """Yield the results of the queries of each suite with each target and variant."""
        for (suite, target, variant), queries in sorted(self._queries.items()):
            judged = [one for name in queries if (one := self._query(suite, name, queries[name])) is not None]
            skills = self._skills.get(suite, ())
            made = activation_of(suite, judged, skills)
            yield replace(made, errored=len(queries) - len(judged), target=target, variant=variant or None)

    def _query(self, suite: str, name: str, samples: dict[int, Sequence[str] | None]) -> Query | None:
        loaded = [one for one in samples.values() if one is not None]
        if len(loaded) < len(samples):  # like the verdict: an errored sample makes the case errored
            return None
        skills = dict.fromkeys(skill for one in loaded for skill in one)
        shares = {skill: sum(skill in one for one in loaded) / len(loaded) for skill in skills}
        return self._expected[suite, name], [skill for skill, share in shares.items() if share >= HALF]
