"""Totals of a run, computed from its rows and from nothing else (SPEC sections 10 and 13).

Rows stream through; per trial 30 bytes are kept. The last row of a trial counts (a rerun adds a second one), while
what was spent is summed over all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentv.errors import StoreError
from agentv.foreign.refusals import store_error
from agentv.model.response import TokenUsage
from agentv.model.summary import Counts, Group, Summary
from agentv.model.values import EMPTY, JsonObject
from agentv.stats.proportion import pooled_interval
from agentv.store.directory import SUMMARY, RunDirectory, read_document
from agentv.store.reading import RowFacts
from agentv.store.tally import STATUSES, Asked, CaseOutcome, Profile, Tally, counted_once, counts_of

if TYPE_CHECKING:
    from agentv.store.early import EarlyTally
    from agentv.store.samples import SamplesTally


@dataclass(frozen=True, slots=True)
class Planned:
    """How much there was to do. What has no row in the end counts as skipped.

    `by_suite`, `by_target` and `by_tag` are numbers of cases, by name; a group that is not named is as large as its
    rows tell.
    """

    cases: int = 0
    trials: int = 0
    by_suite: Mapping[str, int] = field(default_factory=dict)
    by_target: Mapping[str, int] = field(default_factory=dict)
    by_tag: Mapping[str, int] = field(default_factory=dict)


def summarize(
    rows: Iterable[RowFacts],
    *,
    run_id: str,
    planned: Planned,
    duration_ms: float,
    processes: int = 1,
    replaced: Iterable[RowFacts] = (),
) -> Summary:
    """The totals over the rows of a run.

    Args:
        rows: in the order of the file.
        run_id: of the run that they are of.
        planned: how much there was to do.
        duration_ms: how long the run took; rows overlap in time, so they cannot say it.
        processes: how many it took, one after the other.
        replaced: rows that do not count any more, but for what they cost.
    """
    tally, spent = Tally(), _Spent()
    for row in replaced:
        spent.add(row)
    for row in rows:
        spent.add(row)
        tally.add(row)
    groups: dict[Profile, _Outcomes] = defaultdict(_Outcomes)
    repeated: SamplesTally | None = None
    early: EarlyTally | None = None
    for case in tally.cases():
        groups[case.profile].add(case)
        if case.early is not None:  # its samples ended where they looked good or bad: no rate of them is unbiased
            early = early or _early_tally()
            early.add(case)
        elif case.samples is not None:
            repeated = repeated or _samples_tally()
            repeated.add(case.samples)
    found = groups.items()
    whole = _merged(found).group(planned.cases)
    return Summary(
        run_id=run_id,
        cases=whole.cases,
        trials=tally.trials(planned.trials - (early.spared if early is not None else 0)),
        pass_rate=whole.pass_rate,
        pass_rate_interval=whole.pass_rate_interval,
        mean_score=whole.mean_score,
        cost_usd=spent.targets.cost_usd,
        judge_cost_usd=spent.judges.cost_usd,
        token_usage=spent.targets.tokens,
        duration_ms=duration_ms,
        judge_token_usage=spent.judges.tokens,
        processes=processes,
        interval_cases=whole.interval_cases,
        unpriced_trials=spent.targets.unpriced,
        judge_unpriced_trials=spent.judges.unpriced,
        by_suite=_grouped(((profile.suite, (profile, one)) for profile, one in found), planned.by_suite),
        by_target=_grouped(((profile.target, (profile, one)) for profile, one in found), planned.by_target),
        by_prompt=_grouped(((one.prompt, (one, of)) for one, of in found if one.prompt is not None), {}),
        by_tag=_grouped(((tag, (profile, one)) for profile, one in found for tag in profile.tags), planned.by_tag),
        samples=None if repeated is None else repeated.samples(),
        early_stops=None if early is None else early.found(),
    )


def _samples_tally() -> SamplesTally:
    from agentv.store.samples import SamplesTally

    return SamplesTally()


def _early_tally() -> EarlyTally:
    from agentv.store.early import EarlyTally

    return EarlyTally()


def write_summary(directory: RunDirectory, summary: Summary, others: JsonObject = EMPTY) -> None:
    """Write `summary.json`.

    Args:
        directory: of the run.
        summary: of its rows.
        others: keys that are not ours.

    Raises:
        StoreError: the system refuses.
    """
    directory.write(SUMMARY, {**summary.as_json(), **others})


def take_summary(directory: RunDirectory) -> JsonObject:
    """Take `summary.json` away, whose rows are about to change; the keys in it that are not ours.

    Whoever finds none sums the rows: so totals are never of rows that are gone, however the process ends.

    Raises:
        StoreError: it cannot be read, or the system refuses.
    """
    path = directory.path / SUMMARY
    if not path.exists():
        return {}
    own = {"schema_version", *(one.name for one in fields(Summary))}
    others = {key: value for key, value in read_document(path).items() if key not in own}
    try:
        path.unlink()
    except OSError as error:
        raise store_error("remove", path, error) from error
    return others


def read_summary(path: Path) -> Summary:
    """What a `summary.json` says; keys that this agentv does not know are passed over.

    Raises:
        StoreError: it cannot be read, or is no summary.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Summary)
    except OSError as error:
        raise store_error("read", path, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: it is no summary of a run: {error}") from error


class _Outcomes:
    """How the cases of one group ended, and the sum of their scores.

    A mean score there is only where no case's samples ended early: such a case leans to the side on which it ended.
    """

    def __init__(self) -> None:
        self.numbers = dict.fromkeys(STATUSES, 0)
        self.score = 0.0
        self.scored = 0
        self.early = False
        self._judged: Counter[Asked] = Counter()

    def add(self, case: CaseOutcome) -> None:
        self.numbers[case.status] += 1
        self.early = self.early or case.early is not None
        if case.score is not None and case.status in ("passed", "failed"):
            self.score += case.score
            self.scored += 1

    def merge(self, profile: Profile, other: _Outcomes) -> None:
        """Take in the cases that were added to another one, all of one profile."""
        for status, number in other.numbers.items():
            self.numbers[status] += number
        self.score += other.score
        self.scored += other.scored
        self.early = self.early or other.early
        judged = other.numbers["passed"] + other.numbers["failed"]
        self._judged[Asked(profile.suite, profile.target, profile.prompt)] += judged

    def group(self, planned: int) -> Group:
        """The totals of what was merged."""
        counts: Counts = counts_of(list(self.numbers.values()), planned)
        judged = counts.passed + counts.failed
        once = counted_once(self._judged)
        return Group(
            cases=counts,
            pass_rate=counts.passed / judged if judged else None,
            # trials end in any order, and the last bits of a sum depend on it
            mean_score=round(self.score / self.scored, 12) if self.scored and not self.early else None,
            pass_rate_interval=pooled_interval(counts.passed, judged, once) if judged else None,
            interval_cases=once if judged else None,
        )


def _grouped(found: Iterable[tuple[str, tuple[Profile, _Outcomes]]], planned: Mapping[str, int]) -> dict[str, Group]:
    """Groups by name, sorted."""
    named: dict[str, list[tuple[Profile, _Outcomes]]] = defaultdict(list)
    for name, outcomes in found:
        named[name].append(outcomes)
    return {name: _merged(named[name]).group(planned.get(name, 0)) for name in sorted({*named, *planned})}


def _merged(found: Iterable[tuple[Profile, _Outcomes]]) -> _Outcomes:
    merged = _Outcomes()
    for profile, outcomes in found:
        merged.merge(profile, outcomes)
    return merged


class _Spent:
    """What the calls of targets cost, and apart from them those of judges."""

    def __init__(self) -> None:
        self.targets = _Spending()
        self.judges = _Spending()

    def add(self, row: RowFacts) -> None:
        if not row.reused:  # another run paid for the answer
            self.targets.add(row.cost_usd, row.token_usage)
        self.judges.add(row.judge_cost_usd, row.judge_token_usage)


class _Spending:
    """Sums over rows; None as long as none says. `unpriced` counts those that tell tokens and no price."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self.tokens: TokenUsage | None = None
        self.unpriced = 0

    def add(self, cost_usd: float | None, tokens: TokenUsage | None) -> None:
        if cost_usd is not None:
            self._cost = (self._cost or 0.0) + cost_usd
        if tokens is not None:
            self.tokens = tokens if self.tokens is None else self.tokens + tokens
            self.unpriced += cost_usd is None

    @property
    def cost_usd(self) -> float | None:
        return None if self._cost is None else round(self._cost, 10)
