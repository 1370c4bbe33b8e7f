"""Which skills the queries of `activation` loaded, out of rows. Imported where there are such rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from agentv.model.run.row import Row
from agentv.model.run.summary import TAG, Activation
from agentv.stats.intervals.classification import Query, activation_of
from agentv.store.totals.tally import case_of

HALF = 0.5
"""Share of its judged samples in which a query loads a skill, so that it counts as loading it."""


class ActivationTally:
    """Takes in rows of queries; of several rows of one trial the last counts.

    Attributes:
        cases: the queries, as `TalliedCase.case` has them.
    """

    def __init__(self) -> None:
        self.cases: set[int] = set()
        self._queries: dict[tuple[str, str, str], dict[str, dict[int, Sequence[str] | None]]] = defaultdict(dict)
        self._expected: dict[tuple[str, str], str | None] = {}
        self._skills: dict[str, Sequence[str]] = {}

    def add(self, row: Row) -> None:
        """Take in one row; that of another case of the tag is skipped."""
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

    def found(self) -> Iterator[Activation]:
        """What the queries of each suite came to, with each target and variant."""
        for (suite, target, variant), queries in sorted(self._queries.items()):
            judged = [one for name in queries if (one := self._query(suite, name, queries[name])) is not None]
            skills = self._skills.get(suite, ())
            made = activation_of(suite, judged, skills)
            yield replace(made, errored=len(queries) - len(judged), target=target, variant=variant or None)

    def _query(self, suite: str, name: str, samples: dict[int, Sequence[str] | None]) -> Query | None:
        loaded = [one for one in samples.values() if one is not None]
        if len(loaded) < len(samples):  # as its verdict: an errored sample errs the case
            return None
        skills = dict.fromkeys(skill for one in loaded for skill in one)
        shares = {skill: sum(skill in one for one in loaded) / len(loaded) for skill in skills}
        return self._expected[suite, name], [skill for skill, share in shares.items() if share >= HALF]
