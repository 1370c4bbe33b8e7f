"""`agentv compare`: a candidate against a base, or several runs each against each."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from pathlib import Path

from agentv.app.compare.cases import ChosenCases, Common, KeyedCases, shared_names
from agentv.app.compare.evidence import moved_cases, worst_first
from agentv.app.compare.gathering import cases_of
from agentv.app.compare.judging import Part, judge_parts
from agentv.app.compare.matching import Matched, match
from agentv.app.compare.records import differences, planned_cases, planned_variants
from agentv.app.results.stored import StoredRun, open_run, refuse_decided
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.comparison import (
    CaseKey,
    CaseOutcome,
    CasePair,
    Comparison,
    ComparisonSettings,
    GroupComparison,
    Judgement,
    Matrix,
    RunLabel,
)
from agentv.model.run.trial import TrialResult
from agentv.store.files.directory import INDEX
from agentv.store.rows.current import replaced_lines
from agentv.store.rows.outcomes import read_outcomes
from agentv.store.rows.results import read_results_at


@dataclass(frozen=True, slots=True)
class CompareRequest:
    """Runs to compare.

    Attributes:
        runs: an id, a directory, an `index.jsonl`, or `last`; the base first.
        targets: one per run, or one for all runs; empty: all targets of the runs.
        partial: include runs that are still being written.
    """

    runs: tuple[str, ...]
    targets: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """One of them, read."""

    stored: StoredRun
    target: str | None
    cases: ChosenCases
    missing: int
    variant: str | None = None

    @property
    def label(self) -> RunLabel:
        targets = tuple(dict.fromkeys(place.target for place in self.cases.places))
        variants = tuple(dict.fromkeys(one.variant for one in self.cases.places if one.variant is not None))
        return RunLabel(self.stored.run_id, str(self.stored.path), targets, self.cases.distinct, self.missing, variants)

    def trials(self, places: Sequence[int]) -> Iterator[TrialResult]:
        """The trials whose rows begin there."""
        return read_results_at(self.stored.index, self.stored.root, places)

    def keyed(self, shared: Container[str]) -> KeyedCases:
        return KeyedCases(self.cases, shared)


def compare(request: CompareRequest, question: ComparisonSettings) -> Comparison | Matrix:
    """Compare two runs; more than two give a matrix.

    Raises:
        UsageError: fewer than two runs, one does not exist, is being written or is empty, or has no case in
            common with the base.
        StoreError: a run cannot be read.
    """
    runs = list(_read(request, question))
    if len(runs) == 1:
        runs = _variants_of(runs[0])
        question = replace(question, by=None)
    shared = shared_names(run.cases.places for run in runs)
    if len(runs) == 2:
        return _compared(runs[0], runs[1], question, shared)
    return _matrix(runs, question, shared)


def _read(request: CompareRequest, question: ComparisonSettings) -> Iterator[_Run]:
    if len(request.runs) < 2 and question.by != "variant":
        raise UsageError("a comparison needs two or more runs", "agentv compare BASE CANDIDATE")
    if not 0 <= question.margin <= 1 or not 0 < question.alpha < 1:  # `nan` is a number to Python
        raise UsageError(f"--margin {question.margin:g} and --alpha {question.alpha:g}: both must be between 0 and 1")
    if question.by is not None and len(request.runs) > 2:
        raise UsageError("--by compares two runs only", "compare the runs in pairs")
    targets, common = _targets(request), Common()
    for named, target in zip(request.runs, targets, strict=True):
        place = Path(named)
        stored = open_run(
            str(place.parent) if place.name == INDEX else named, action="compare", partial=request.partial
        )
        refuse_decided(stored, "compare")
        cases = cases_of(read_outcomes(stored.index, replaced_lines(stored.index)), question.cluster, common)
        if not cases:
            raise UsageError(f"nothing to compare: the run {stored.run_id} has no finished trials")
        missing = max(0, planned_cases(stored.record) - len(cases))
        chosen = _only(ChosenCases(cases, range(len(cases))), target, stored.run_id)
        yield _Run(stored, target, chosen, missing)
    common.ids.close()


def _variants_of(run: _Run) -> list[_Run]:
    """A run as one for each of its variants; the base is the first one that its suites have.

    Raises:
        UsageError: it has fewer than two.
    """
    ran = dict.fromkeys(place.variant for place in run.cases.places if place.variant is not None)
    names = sorted(ran, key=_order(planned_variants(run.stored.record)))  # rows stand in the order in which they ended
    if len(names) < 2:
        what = "has no variants" if not names else f"has one variant, '{names[0]}'"
        raise UsageError(f"the run {run.stored.run_id} {what}", "--by variant compares the variants of one run")
    return [replace(run, cases=run.cases.of(name), variant=name, missing=0) for name in names]


def _order(planned: Sequence[str]) -> Callable[[str], int]:
    places = {name: place for place, name in enumerate(planned)}
    return lambda name: places.get(name, len(places))


def _targets(request: CompareRequest) -> Sequence[str | None]:
    if len(request.targets) in (0, 1):
        return [request.targets[0] if request.targets else None] * len(request.runs)
    if len(request.targets) == len(request.runs):
        return request.targets
    message = f"{len(request.targets)} targets were given for {len(request.runs)} runs"
    raise UsageError(message, "give --target once for all runs, or once per run in the same order")


def _only(cases: ChosenCases, target: str | None, run_id: str) -> ChosenCases:
    """The cases on a target."""
    if target is None:
        return cases
    found = cases.on(target)
    if not found.numbers:
        names = dict.fromkeys(place.target for place in cases.places)
        hint = did_you_mean(target, names) or f"it holds {', '.join(names)}"
        raise UsageError(f"the run {run_id} has no case on the target '{target}'", hint)
    return found


def _compared(base: _Run, candidate: _Run, question: ComparisonSettings, shared: Container[str]) -> Comparison:
    matched = match(base.keyed(shared), candidate.keyed(shared), edited=question.edited, errored=question.errored)
    found = _described(base, candidate, question, matched)
    (found,) = _judged([found], [matched])
    found = replace(found, groups=_groups(matched, question))
    shown = list(islice((pair for pair in found.pairs if pair.moved), question.limit))
    if not shown:
        return found
    return replace(found, moved=moved_cases(shown, base.trials, candidate.trials))


def _judged(found: Sequence[Comparison], matched: Sequence[Matched]) -> list[Comparison]:
    """The comparisons with their verdicts, corrected for their number; those of a run with itself are not counted."""
    alone = [place for place, one in enumerate(found) if one.same and matched[place].pairs]
    tested = [place for place, one in enumerate(found) if not one.same and matched[place].pairs]
    wholes: dict[int, Judgement] = {}
    for places in (*([place] for place in alone), tested):
        if places:
            parts = [Part(matched[place].pairs, matched[place].errored) for place in places]
            wholes.update(zip(places, judge_parts(parts, found[places[0]].question), strict=True))
    return [
        replace(one, whole=replace(whole, verdict="equivalent") if one.same else whole) if whole else one
        for place, one in enumerate(found)
        for whole in [wholes.get(place)]
    ]


def _described(base: _Run, candidate: _Run, question: ComparisonSettings, matched: Matched) -> Comparison:
    """The comparison, without a verdict and without evidence."""
    _refuse_strangers(base, candidate, matched)
    _refuse_unclustered(matched.pairs, question)
    same = base.stored.path.resolve() == candidate.stored.path.resolve() and base.target == candidate.target
    same = same and base.variant == candidate.variant
    return Comparison(
        base=base.label,
        candidate=candidate.label,
        question=question,
        whole=None,
        pairs=matched.pairs.chosen(worst_first(matched.pairs)),
        left_out=matched.left_out,
        same=same,
        edited=matched.edited,
        notes=(
            *differences(base.stored.record, candidate.stored.record),
            *matched.settings.notes(),
        ),
        lost=matched.lost,
    )


def _refuse_strangers(base: _Run, candidate: _Run, matched: Matched) -> None:
    runs = f"{base.stored.run_id} and {candidate.stored.run_id}"
    if not matched.common:
        hint = f"one run has {_suites_and_targets(base)}; the other has {_suites_and_targets(candidate)}"
        raise UsageError(f"{runs} have no case in common", hint)
    if len(matched.left_out.edited) == matched.common:
        changes = dict.fromkeys(what for one in matched.left_out.edited.values() for what in one)
        message = f"every case that {runs} have in common was edited between them ({', '.join(changes)})"
        raise UsageError(message, "to compare the edited cases anyway, add --edited")


def _suites_and_targets(run: _Run) -> str:
    """`the suite refunds on gpt`."""
    suites, targets = (
        dict.fromkeys(names) for names in zip(*((one.suite, one.target) for one in run.cases.places), strict=True)
    )
    several = "suites" if len(suites) > 1 else "suite"
    return f"the {several} {', '.join(suites)} on {', '.join(targets)}"


def _refuse_unclustered(pairs: Sequence[CasePair], question: ComparisonSettings) -> None:
    """Every case must have the cluster that was asked for: one without it would be taken for independent."""
    if question.cluster is None:
        return
    lacking = [pair.after_key for pair in pairs if pair.before.cluster is None]
    if not lacking:
        return
    first = f"the first is '{lacking[0].case_id}' of {lacking[0].suite}"
    raise UsageError(f"{len(lacking)} of {len(pairs)} cases have no '{question.cluster}' in their metadata; {first}")


def _groups(matched: Matched, question: ComparisonSettings) -> tuple[GroupComparison, ...]:
    """The comparisons of parts, corrected for their number."""
    if question.by is None or not matched.pairs:
        return ()
    both = (matched.pairs, matched.errored)
    parts: dict[str, tuple[array[int], array[int]]] = {}
    for side, pairs in enumerate(both):
        for place, pair in enumerate(pairs):
            for name in _parts_of(pair, question):
                parts.setdefault(name, (array("I"), array("I")))[side].append(place)
    judged = {
        name: Part(*(pairs.chosen(places) for pairs, places in zip(both, found, strict=True)))
        for name, found in sorted(parts.items())
        if found[0]
    }
    if not judged:
        raise UsageError(f"nothing to compare by {question.by}: no case graded in both runs has a {question.by}")
    return tuple(map(GroupComparison, judged, judge_parts(list(judged.values()), question)))


def _parts_of(pair: CasePair, question: ComparisonSettings) -> tuple[str, ...]:
    """The parts that a pair belongs to."""
    if question.by == "variant":
        return (pair.after_key.variant,) if pair.after_key.variant is not None else ()
    return (pair.after_key.suite,) if question.by == "suite" else pair.after.tags


def _matrix(runs: Sequence[_Run], question: ComparisonSettings, shared: Container[str]) -> Matrix:
    keyed = [run.keyed(shared) for run in runs]
    described: dict[tuple[int, int], tuple[Comparison, Matched]] = {}
    for one, other in combinations(range(len(runs)), 2):
        matched = match(keyed[one], keyed[other], edited=question.edited, errored=question.errored)
        if one == 0 or matched.pairs:
            described[one, other] = _described(runs[one], runs[other], question, matched), matched
    found = dict(zip(described, _judged(*map(list, zip(*described.values(), strict=True))), strict=True))
    scores = _scores(found, len(runs))
    shown = dict(list(scores.items())[: question.limit])
    return Matrix(tuple(run.label for run in runs), found, shown, len(scores) - len(shown))


def _scores(found: Mapping[tuple[int, int], Comparison], runs: int) -> dict[CaseKey, tuple[float | None, ...]]:
    """The scores of the cases of the first run that do not score alike in all of them, most apart first."""
    rows: dict[CaseKey, list[float | None]] = {}
    decided = {pair.before_key for other in range(1, runs) for pair in found[0, other].pairs if pair.by_verdict}
    for other in range(1, runs):
        for pair in found[0, other].pairs:
            before, after = (_shown(one, verdict=pair.before_key in decided) for one in (pair.before, pair.after))
            rows.setdefault(pair.before_key, [before, *[None] * (runs - 1)])[other] = after
    spreads = {key: _spread(row) for key, row in rows.items()}
    order = sorted((key for key in rows if spreads[key] > 0), key=lambda key: (-spreads[key], key))
    return {key: tuple(rows[key]) for key in order}


def _shown(case: CaseOutcome, *, verdict: bool) -> float | None:
    """The score, or in a row of which one run was sampled until decided, 1 or 0 as the case passed."""
    return float(case.status == "passed") if verdict else case.score


def _spread(scores: Sequence[float | None]) -> float:
    known = [score for score in scores if score is not None]
    return round(max(known) - min(known), 9)
