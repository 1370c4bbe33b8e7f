"""Totals of a run, computed only from its rows (SPEC sections 10 and 13).

Rows are streamed, and 42 bytes per trial are kept. The last row of a trial counts (a rerun adds a second one), but
costs are summed over all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from agentv.errors import StoreError
from agentv.model.run.matrix import GroupTotals
from agentv.model.run.row import Row
from agentv.model.run.summary import TAG, Summary
from agentv.model.values.values import JsonObject
from agentv.store.files.directory import SUMMARY, DamagedRecordError, RunDirectory, read_document
from agentv.store.files.encoding import decodable
from agentv.store.files.whole_file import as_store_error
from agentv.store.totals.group_tally import GroupTally, SpentByCell, merged, one_rule
from agentv.store.totals.tally import Profile, Tally

if TYPE_CHECKING:
    from agentv.stats.samples.case_samples import SamplesTally
    from agentv.store.totals.distinct import EarlyTally
    from agentv.store.totals.matrix import ActivationTally


class PlannedCounts(Struct, frozen=True):
    """Planned numbers of cases and trials. Those without a row in the end count as skipped.

    `by_suite`, `by_target` and `by_tag` are numbers of cases by name; for groups that are not listed, cases with rows
    are counted. `targets` are those of suites with several targets. `several` is whether a case may have several
    results, by target, prompt or variant. `drawn_from` is the number of cases from which these were drawn at random;
    0 if they were not.
    """

    cases: int = 0
    trials: int = 0
    by_suite: Mapping[str, int] = field(default_factory=dict)
    by_target: Mapping[str, int] = field(default_factory=dict)
    by_tag: Mapping[str, int] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    several: bool = False
    drawn_from: int = 0


def summarize(
    rows: Iterable[Row],
    *,
    run_id: str,
    planned: PlannedCounts,
    duration_ms: float,
    processes: int = 1,
    replaced: Iterable[Row] = (),
) -> Summary:
    """Return the totals of a run from its rows.

    Args:
        rows: the rows in the order of the file.
        run_id: id of the run.
        planned: planned numbers of cases and trials.
        duration_ms: duration of the run, which does not follow from rows because trials run concurrently.
        processes: number of successive processes of the run.
        replaced: rows that no longer count, except for their costs.
    """
    counts = RunCounts()
    for row in replaced:
        counts.add_replaced(row)
    for row in rows:
        counts.add(row)
    return counts.summary(run_id=run_id, planned=planned, duration_ms=duration_ms, processes=processes)


class RunCounts(Struct):
    """Running totals of a run: rows are added as they are written, instead of being read back from disk."""

    _tally: Tally = field(default_factory=Tally)
    _spent: SpentByCell = field(default_factory=SpentByCell)
    _activation: ActivationTally | None = None

    def add(self, row: Row) -> None:
        """Add a row."""
        self._spent.add(row)
        self._tally.add(row)
        if TAG in row.tags:
            if self._activation is None:
                from agentv.store.totals.matrix import ActivationTally

                self._activation = ActivationTally()
            self._activation.add(row)

    def failed_queries(self, suite: str) -> int:
        """Return the number of distinct queries of a suite's `activation` that failed."""
        queries = self._activation.cases if self._activation is not None else ()
        failed = (one for one in self._tally.cases() if one.profile.suite == suite and one.status == "failed")
        return len({one.case for one in failed if one.case in queries})

    def add_replaced(self, row: Row) -> None:
        """Add only the costs of a row that no longer counts."""
        self._spent.add(row)

    def summary(self, *, run_id: str, planned: PlannedCounts, duration_ms: float, processes: int = 1) -> Summary:
        """Return the totals so far; the arguments are those of `summarize`."""
        tally = self._tally
        groups: dict[Profile, GroupTally] = defaultdict(partial(GroupTally, clustered=tally.clustered))
        repeated: SamplesTally | None = None
        early: EarlyTally | None = None
        for case in tally.cases():
            groups[case.profile].add(case)
            if case.early is not None:  # stopping depended on the results, so shares of its samples are biased
                if early is None:
                    from agentv.store.totals.distinct import EarlyTally

                    early = EarlyTally()
                early.add(case)
            elif case.samples is not None:
                if repeated is None:
                    from agentv.stats.samples.case_samples import SamplesTally

                    repeated = SamplesTally()
                repeated.add(case.samples, case.cluster)
        found = groups.items()
        all_cases, spent = merged(found), self._spent.of()
        whole = all_cases.totals(planned.cases)
        spared = early.spared if early is not None else 0
        missing = tally.missing(planned.trials - spared)
        of_targets = {**dict.fromkeys(planned.targets if missing else (), 0), **planned.by_target}
        summary = Summary(
            run_id=run_id,
            duration_ms=duration_ms,
            processes=processes,
            **asdict(whole),
            trials=tally.trials(planned.trials - spared),
            cost_usd=spent.targets.cost_usd,
            judge_cost_usd=spent.judges.cost_usd,
            token_usage=spent.targets.tokens,
            judge_token_usage=spent.judges.tokens,
            user_cost_usd=spent.users.cost_usd,
            user_token_usage=spent.users.tokens,
            user_unpriced_trials=spent.users.unpriced,
            pass_rate_interval_of_all=(
                all_cases.interval_of_all(planned.drawn_from) if planned.drawn_from and not tally.several else None
            ),
            rule=one_rule(groups),
            unpriced_trials=spent.targets.unpriced,
            judge_unpriced_trials=spent.judges.unpriced,
            by_suite=_grouped(((profile.suite, (profile, one)) for profile, one in found), planned.by_suite),
            by_target=_grouped(((profile.target, (profile, one)) for profile, one in found), of_targets),
            by_prompt=_grouped(((one.prompt, (one, cases)) for one, cases in found if one.prompt is not None), {}),
            by_variant=_grouped(((one.variant, (one, cases)) for one, cases in found if one.variant is not None), {}),
            by_tag=_grouped(((tag, (profile, one)) for profile, one in found for tag in profile.tags), planned.by_tag),
            samples=None if repeated is None else repeated.samples(),
            early_stops=None if early is None else early.early_stops(),
            activation=() if self._activation is None else tuple(self._activation.activations()),
        )
        if tally.several or (planned.several and missing):
            from agentv.store.totals.distinct import DistinctCases  # not needed by most runs

            named = {"by_suite": planned.by_suite, "by_target": of_targets, "by_tag": planned.by_tag}
            summary = DistinctCases(tally.cases()).applied_to(summary, {"": {"": planned.cases}, **named}, missing)
        ran = zip(*((one.target, one.prompt, one.variant) for one in groups), strict=True)
        if max((len({*names} - {None}) for names in ran), default=0) < 2:
            return summary
        from agentv.store.totals.matrix import MatrixTally

        return replace(summary, matrix=MatrixTally(found, tally, self._spent).matrix(summary))


def remove_summary(directory: RunDirectory) -> JsonObject:
    """Remove `summary.json`, because its rows are about to change, and return the keys in it that are not agentv's.

    Readers that find none compute totals from the rows, so totals are never outdated, however the process ends.

    Raises:
        StoreError: the file cannot be read or removed.
    """
    path = directory.path / SUMMARY
    if not path.exists():
        return {}
    own = {"schema_version", *Summary.__struct_fields__}
    try:
        found = read_document(path)
    except DamagedRecordError:
        found = {}  # the run will write a new one
    others = {key: value for key, value in found.items() if key not in own}
    with as_store_error("remove", path):
        path.unlink()
    return others


def summary_in(path: Path, content: bytes) -> Summary:
    """Return the totals in the content of a `summary.json`; unknown keys are ignored.

    Raises:
        StoreError: it is not a summary.
    """
    try:
        return replace(msgspec.json.decode(content, type=decodable(Summary)), corrected=None)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StoreError(f"cannot read {path}: not a summary of a run: {error}") from error


def _grouped(
    found: Iterable[tuple[str, tuple[Profile, GroupTally]]], planned: Mapping[str, int]
) -> dict[str, GroupTotals]:
    """Return the totals of groups by name, sorted."""
    named: dict[str, list[tuple[Profile, GroupTally]]] = defaultdict(list)
    for name, outcomes in found:
        named[name].append(outcomes)
    return {name: merged(named[name]).totals(planned.get(name, 0)) for name in sorted({*named, *planned})}
