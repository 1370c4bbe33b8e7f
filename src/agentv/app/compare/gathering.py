"""Grouping of a run's rows into cases, in one pass, and comparison of the parts of one run."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.app.compare.matching import (
    NONE,
    STATUS_NUMBERS,
    STATUSES,
    CaseScope,
    ChosenCases,
    KeyedCases,
    Matched,
    NumberedValues,
    RunCases,
    SharedValues,
    known,
    match,
    shared_names,
    without,
)
from agentv.model.run.cases import RequiredGrade, Sample
from agentv.model.run.comparison import CaseKey, CaseOutcome, ComparisonSettings, Judgement, Loss
from agentv.model.run.matrix import (
    DIMENSIONS,
    RESOURCES,
    CaseUsage,
    Dimension,
    MatrixComparison,
    MatrixGroup,
    RunMatrix,
)
from agentv.model.run.row import Row
from agentv.model.run.summary import Summary
from agentv.model.values.values import JsonObject, objects_in
from agentv.stats.samples.deciding import Rule, verdict_over
from agentv.store.rows.reading import read_placed_rows, replaced_lines

_PLACE_BITS = 32


def cases_of(
    rows: Iterable[tuple[int, Row]], cluster: str | None = None, common: SharedValues | None = None
) -> RunCases:
    """Group the rows of a run into cases.

    Args:
        rows: its finished trials, each with the byte offset of its row.
        cluster: metadata key whose equal values make cases dependent; None: the run's own key, else the conversation.
        common: values shared with other runs.
    """
    gathered = _Gathered(common or SharedValues(), cluster)
    for at, row in rows:
        gathered.add(at, row)
    cases = RunCases(gathered.common)
    for place, case_id, outcome in gathered.outcomes():
        cases.add(place, case_id, outcome)
    return cases


class _Gathered:
    """The trials of a run and the settings of its cases, in columns. All trials of a case have the same settings."""

    def __init__(self, common: SharedValues, cluster: str | None) -> None:
        self.common, self._cluster = common, cluster
        self._known: dict[int, int] = {}  # an int key takes half the memory of a pair
        self._texts, self._inputs, self._checks = (array("q") for _ in range(3))
        self._rules, self._tags, self._clusters = (array("I") for _ in range(3))
        self._gates = NumberedValues[tuple[RequiredGrade, ...]]()
        self._case_of, self._gates_of = array("I"), array("I")
        self._status_of, self._score_of, self._row_of = array("b"), array("d"), array("q")
        self._used = [array("d") for _ in RESOURCES]

    def add(self, at: int, row: Row) -> None:
        """Add a trial whose row begins at byte offset `at`."""
        common = self.common
        place = common.places.number(CaseScope(row.suite, row.eval_path, row.prompt_id, row.target, row.variant))
        identity = common.ids.number(row.test_id) << _PLACE_BITS | place
        case = self._known.setdefault(identity, len(self._known))
        if case == len(self._texts):
            self._add_case(row)
        if row.scores:
            self._checks[case] = hash(tuple((one.name, one.type, one.weight, one.required) for one in row.scores))
        self._case_of.append(case)
        self._row_of.append(at)
        self._status_of.append(STATUS_NUMBERS[row.status])
        self._score_of.append(NONE if row.score is None else row.score)
        self._gates_of.append(self._gates.number(row.gates))
        tokens = row.token_usage.total if row.token_usage is not None else None
        used = (row.cost_usd, tokens, row.agent_turns or len(row.turns), row.duration_ms)
        for column, one, nothing in zip(self._used, used, (None, None, 0, 0), strict=True):
            column.append(NONE if one is None or one == nothing else one)

    def _add_case(self, row: Row) -> None:
        common = self.common
        self._texts.append(hash(row.case_sha256))
        self._rules.append(common.rules.number(Rule(row.repeat, row.threshold, row.aggregate or "mean", row.alpha)))
        self._tags.append(common.tags.number(row.tags))
        self._clusters.append(common.clusters.number(_cluster(row, self._cluster)))
        # the input of a conversation includes answers, which differ without an edit
        self._inputs.append(0 if row.turns else hash(msgspec.json.encode(row.input)))
        self._checks.append(0)

    def outcomes(self) -> Iterator[tuple[CaseScope, str, CaseOutcome]]:
        """Yield the cases, in the order of their first rows."""
        first, next_trial = self._trials()
        for case, identity in enumerate(self._known):
            trials = [first[case]]
            while next_trial[trials[-1]]:
                trials.append(next_trial[trials[-1]])
            place = self.common.places.values[identity & ((1 << _PLACE_BITS) - 1)]
            yield place, self.common.ids.values[identity >> _PLACE_BITS], self._outcome(case, trials)

    def _trials(self) -> tuple[array[int], array[int]]:
        """Return the first trial of each case, and for each trial the next one of its case (0 after the last)."""
        first, last = array("I"), array("I")
        next_trial = array("I", bytes(4 * len(self._case_of)))
        for trial, case in enumerate(self._case_of):
            if case == len(first):
                first.append(trial)
                last.append(trial)
            else:
                next_trial[last[case]] = trial
                last[case] = trial
        return first, next_trial

    def _outcome(self, case: int, trials: list[int]) -> CaseOutcome:
        rule = self.common.rules.values[self._rules[case]]
        samples = []
        for trial in trials:
            gates = self._gates.values[self._gates_of[trial]]
            samples.append(Sample(STATUSES[self._status_of[trial]], known(self._score_of[trial]), gates))
        status = verdict_over(samples, rule)
        graded = [
            (trial, one)
            for trial, one in zip(trials, samples, strict=True)
            if one.score is not None and one.status in ("passed", "failed")
        ]
        judged = [one for _, one in graded]
        counted = judged if status != "skipped" else []
        return CaseOutcome(
            status=status,
            score=fmean(one.score or 0.0 for one in counted) if counted else None,
            samples=len(judged),
            threshold=rule.threshold,
            text=self._texts[case],
            input=self._inputs[case],
            checks=self._checks[case],
            tags=self.common.tags.values[self._tags[case]],
            cluster=self.common.clusters.values[self._clusters[case]],
            places=tuple(self._row_of[trial] for trial in trials),
            repeat=rule.repeat,
            aggregate=rule.aggregate,
            alpha=rule.alpha,
            rate=fmean(one.status == "passed" for one in counted) if counted else None,
            usage=CaseUsage(*(known(fmean(used[trial] for trial, _ in graded)) for used in self._used))
            if graded
            else CaseUsage(),
        )


def _cluster(row: Row, key: str | None) -> str | None:
    """Return the cluster of a row's case, or None if it is independent. A given key overrides the run's own."""
    if key is not None and (key != row.cluster_key or row.cluster is None):
        value = row.metadata.get(key)
        return None if value is None else json.dumps(value, sort_keys=True)
    if row.cluster is not None:
        return row.cluster
    return f"{row.suite}/{row.conversation_id}" if row.conversation_id else None


def differences(base: JsonObject, candidate: JsonObject) -> Iterator[str]:
    """Yield notes about different judges and versions of agentv; names in them are not escaped."""
    for what, of in (("judge", _judges), ("agentv", lambda record: str(record.get("agentv") or "unknown"))):
        before, after = of(base), of(candidate)
        if before != after:
            yield f"the {what} differs: {before} → {after}"


def planned_cases(record: JsonObject) -> int:
    """Return the number of planned cases, counted per target and prompt; 0 if unknown."""
    planned = record.get("planned")
    cases = planned.get("cases") if isinstance(planned, Mapping) else None
    return cases if isinstance(cases, int) else 0


def in_order_of_run(record: JsonObject, by: Dimension, names: Iterable[str | None]) -> tuple[str | None, ...]:
    """Return the distinct names in the order of the run's suites, then other names, sorted, then None."""
    used = dict.fromkeys(names)
    keys: dict[Dimension, tuple[str, str]] = {"target": ("targets", "name"), "prompt": ("prompts", "id")}
    listed, name = keys.get(by, ("variants", "name"))
    found = (one for suite in objects_in(record.get("suites")) for one in objects_in(suite.get(listed)))
    named = dict.fromkeys(str(one[name]) for one in found if name in one)
    planned = [one for one in named if one in used]
    others = sorted(name for name in used if name is not None and name not in planned)
    return (*planned, *others, *((None,) if None in used else ()))


def _judges(record: JsonObject) -> str:
    """Return the name of the judge of the command line, else those of the suites."""
    settings = record.get("settings")
    forced = settings.get("judge") if isinstance(settings, Mapping) else None
    named = [forced] if forced else [suite.get("judge") for suite in objects_in(record.get("suites"))]
    return ", ".join(dict.fromkeys(str(name) for name in named if name)) or "none named"


def with_comparisons(summary: Summary, index: Path, record: JsonObject) -> Summary:
    """Return the totals with their matrix in run order and its parts compared; unchanged if there is no matrix.

    Args:
        summary: of the run.
        index: path of its rows.
        record: its `run.json`.

    Raises:
        StoreError: the rows cannot be read.
    """
    if summary.matrix is None or summary.matrix.comparisons is not None:
        return summary
    matrix = in_order(summary.matrix, record)
    if summary.cut is not None:  # fixed-sample tests are not valid for such a run
        return replace(summary, matrix=matrix.cut_short())
    cases = cases_of(read_placed_rows(index, replaced_lines(index)))
    names = {by: [name for name in matrix.names(by) if name is not None] for by in DIMENSIONS}
    found = compared_within(ChosenCases(cases, range(len(cases))), names, ComparisonSettings())
    return replace(summary, matrix=replace(matrix, comparisons=found.comparisons, tests=found.tests))


class ComparedWithin(Struct, frozen=True):
    """Comparisons of the parts of one run.

    Attributes:
        tests: number of tests that they are corrected for.
        lost: for each comparison, the cases that passed with the base but not with the candidate.
    """

    comparisons: tuple[MatrixComparison, ...]
    tests: int
    lost: tuple[Mapping[CaseKey, Loss], ...] = ()


class _Paired(Struct, frozen=True):
    """Two parts of a run that have cases in common."""

    by: Dimension
    base: str
    candidate: str
    matched: Matched


def compared_within(
    cases: ChosenCases, names: Mapping[Dimension, Sequence[str]], settings: ComparisonSettings
) -> ComparedWithin:
    """Compare the parts of a run.

    Args:
        cases: of the run.
        names: targets, prompts and variants to compare, the base of each first.
        settings: of the comparisons; `alpha` is for all of them together.
    """
    from agentv.stats.verdicts import Part, judge_parts  # imports numpy

    parts = Parts(cases)
    found = [pair for by in DIMENSIONS for pair in parts.pairs(by, names.get(by, ()), settings)]
    judged = [one for one in found if one.matched.pairs]
    judgements = (
        judge_parts([Part(one.matched.pairs, one.matched.errored) for one in judged], settings) if judged else []
    )
    judgement_of = {id(one): judgement for one, judgement in zip(judged, judgements, strict=True)}
    tests = max((one.tested for one in judgements), default=1)
    comparisons = tuple(_comparison(one, judgement_of.get(id(one))) for one in found)
    return ComparedWithin(comparisons, tests, tuple(one.matched.lost for one in found))


class Parts:
    """The cases of a run indexed by place, so that a part is found without a scan of all cases.

    They are sorted by id, as the last digits of a p-value can depend on the order of cases, and rows are in the order
    in which trials ended.
    """

    def __init__(self, chosen: ChosenCases) -> None:
        self._cases = chosen.cases
        self._at: dict[int, array[int]] = {}
        for number in sorted(chosen.numbers, key=self._cases.case_id):
            self._at.setdefault(self._cases.place_number(number), array("I")).append(number)
        self._shared = shared_names([chosen.places])

    def pairs(self, by: Dimension, names: Sequence[str], settings: ComparisonSettings) -> Iterator[_Paired]:
        """Yield each part, matched with the first earlier part that has cases in common with it, if there is one."""
        before: list[tuple[str, KeyedCases]] = []
        for name in names:
            part = KeyedCases(self.part(by, name), self._shared)
            for base, other in before:
                known = {without(place, by) for place in other.places.values()}
                if not any(without(place, by) in known for place in part.places.values()):
                    continue
                matched = match(other, part, edited=True, errored=settings.errored, within=by)
                if matched.common:
                    yield _Paired(by, base, name, matched)
                    break
            before.append((name, part))

    def part(self, by: Dimension, name: str) -> ChosenCases:
        """Return the cases with this target, prompt or variant."""
        places, numbers = self._cases.common.places.values, array("I")
        for place in sorted(self._at, key=lambda place: [part or "" for part in places[place]]):
            if getattr(places[place], by) == name:
                numbers.extend(self._at[place])
        return ChosenCases(self._cases, numbers)


def _comparison(paired: _Paired, judgement: Judgement | None) -> MatrixComparison:
    left = paired.matched.left_out
    names = paired.by, paired.base, paired.candidate
    if judgement is None:
        found = MatrixComparison(*names, None, errored=len(left.errored))
    else:
        found = judgement.between(*names)
    return replace(
        found, only_base=len(left.only_base), only_candidate=len(left.only_candidate), unfinished=len(left.unfinished)
    )


def in_order(matrix: RunMatrix, record: JsonObject) -> RunMatrix:
    """Return the matrix with its targets, prompts and variants in the order of the run instead of sorted."""
    names = {by: in_order_of_run(record, by, matrix.names(by)) for by in DIMENSIONS}
    place_of = {by: {name: place for place, name in enumerate(names[by])} for by in DIMENSIONS}

    def groups(by: Dimension) -> tuple[MatrixGroup, ...]:
        return tuple(sorted(matrix.groups(by), key=lambda one: place_of[by][one.name]))

    cells = sorted(
        matrix.cells,
        key=lambda one: (
            place_of["prompt"][one.prompt],
            place_of["target"][one.target],
            place_of["variant"][one.variant],
        ),
    )
    return replace(
        matrix,
        targets=tuple(name for name in names["target"] if name is not None),
        prompts=names["prompt"],
        variants=names["variant"],
        cells=tuple(cells),
        by_target=groups("target"),
        by_prompt=groups("prompt"),
        by_variant=groups("variant"),
    )
