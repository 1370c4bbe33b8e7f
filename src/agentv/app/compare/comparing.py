"""`agentv compare`: two runs, several runs in pairs, or the parts of one run."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.compare.gathering import Parts, cases_of, compared_within, differences, in_order_of_run, planned_cases
from agentv.app.compare.matching import ChosenCases, KeyedCases, Matched, SharedValues, match, shared_names
from agentv.app.results.stored import StoredRun, open_run, refuse_decided
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.comparison import (
    CaseKey,
    CaseOutcome,
    CasePair,
    CheckChange,
    Comparison,
    ComparisonSettings,
    GroupComparison,
    Judgement,
    Matrix,
    MovedCase,
    RunComparison,
    RunLabel,
    SampleEvidence,
)
from agentv.model.run.grade import TOLERANCE
from agentv.model.run.matrix import DIMENSIONS, Dimension
from agentv.model.run.trial import Score, TrialResult
from agentv.stats.verdicts import Part, judge_parts
from agentv.store.files.directory import INDEX
from agentv.store.rows.reading import read_placed_rows, replaced_lines
from agentv.store.rows.results import read_results_at


class CompareRequest(Struct, frozen=True):
    """Runs to compare, or one run whose targets, prompts and variants are compared.

    Attributes:
        runs: ids, directories, `index.jsonl` files, or `last`; the base first.
        targets: one per run, or one for all runs; for one run, the targets to compare, the base first; empty: all.
        partial: include runs that are still being written.
    """

    runs: tuple[str, ...]
    targets: tuple[str, ...] = ()
    partial: bool = False


class _Run(Struct, frozen=True):
    """A run to compare, or a part of one.

    Attributes:
        missing: number of planned cases without a result.
        part: the target, prompt or variant of its cases, if they are a part of the run.
        within: the dimension in which it differs from another part of the same run that it is compared with.
    """

    stored: StoredRun
    cases: ChosenCases
    missing: int
    part: tuple[Dimension, str] | None = None
    within: Dimension | None = None

    @property
    def label(self) -> RunLabel:
        targets = tuple(dict.fromkeys(place.target for place in self.cases.places))
        variants = tuple(dict.fromkeys(one.variant for one in self.cases.places if one.variant is not None))
        prompts = (self.part[1],) if self.part is not None and self.part[0] == "prompt" else ()
        path = str(self.stored.path)
        return RunLabel(self.stored.run_id, path, targets, self.cases.distinct, self.missing, variants, prompts)

    def trials(self, places: Sequence[int]) -> Iterator[TrialResult]:
        """Yield the trials whose rows begin at these byte offsets."""
        return read_results_at(self.stored.index, self.stored.root, places)


def compare(request: CompareRequest, question: ComparisonSettings) -> Comparison | Matrix | RunComparison:
    """Compare two runs; more than two give a matrix.

    Of one run, the parts are compared: two parts like two runs, several parts by `question.by` as a matrix, otherwise
    each part with the first.

    Raises:
        UsageError: a run does not exist, is being written or is empty, or has no case in common with the base; or a
            single run has no parts.
        StoreError: a run cannot be read.
    """
    if len(request.runs) == 1:
        return _compare_parts(request, question)
    runs = list(_read(request, question))
    shared = shared_names(run.cases.places for run in runs)
    if len(runs) == 2:
        return _compared(runs[0], runs[1], question, shared)
    return _matrix(runs, question, shared)


def compare_each(base: str, candidates: Sequence[str], question: ComparisonSettings) -> list[Comparison | UsageError]:
    """Compare each candidate with a base, as `compare` compares two runs; the base is read once.

    Args:
        base: as in `CompareRequest.runs`; unfinished runs are included.
        candidates: as `base`.
        question: without `by`.

    Returns:
        The comparison of each candidate, or why it cannot be compared.

    Raises:
        StoreError: a run cannot be read.
    """
    common = SharedValues()
    try:
        first = _read_one(base, question, common, partial=True)
    except UsageError as error:
        return [error] * len(candidates)

    def compared(named: str) -> Comparison | UsageError:
        try:
            other = _read_one(named, question, common, partial=True)
            shared = shared_names(run.cases.places for run in (first, other))
            return _compared(first, other, question, shared)
        except UsageError as error:
            return error

    return list(map(compared, candidates))


def _compare_parts(request: CompareRequest, question: ComparisonSettings) -> Comparison | Matrix | RunComparison:
    """Compare the targets, prompts and variants of one run."""
    if question.by in ("suite", "tag"):
        raise UsageError(
            f"--by {question.by} needs two runs", "--by target, prompt or variant compares parts of one run"
        )
    (run,) = _read(replace(request, targets=request.targets[:1] if len(request.targets) == 1 else ()), question)
    names = _names_of(run, request.targets, question)
    by, parts = max(names.items(), key=lambda one: len(one[1]))
    if len(names) == 1 and (len(parts) == 2 or question.by is not None):
        parts_of = Parts(run.cases)
        runs = [replace(run, cases=parts_of.part(by, name), missing=0, part=(by, name), within=by) for name in parts]
        question, shared = replace(question, by=None), shared_names([run.cases.places])
        return _compared(runs[0], runs[1], question, shared) if len(runs) == 2 else _matrix(runs, question, shared)
    if len(request.targets) > 1:
        run = replace(run, cases=run.cases.among("target", names["target"]))
    if question.cluster is not None:
        cases = run.cases.cases
        lacking = [number for number in run.cases.numbers if cases.outcome(number).cluster is None]
        named = [(cases.case_id(number), cases.place(number).suite) for number in lacking]
        _refuse_lacking(named, len(run.cases), question.cluster)
    found = compared_within(run.cases, names, question)
    if not found.comparisons:
        raise UsageError(
            f"the targets, prompts and variants of the run {run.stored.run_id} have no case in common",
            "only results of the same case are compared",
        )
    return RunComparison(run.label, question, found.comparisons, found.tests, found.lost)


def _names_of(run: _Run, targets: Sequence[str], question: ComparisonSettings) -> dict[Dimension, tuple[str, ...]]:
    """Return the dimensions to compare (target, prompt, variant) that have several names, with these in run order.

    Raises:
        UsageError: no dimension has several names.
    """
    found: dict[Dimension, tuple[str, ...]] = {}
    for by in DIMENSIONS:
        names = in_order_of_run(run.stored.record, by, (getattr(place, by) for place in run.cases.places))
        found[by] = tuple(name for name in names if name is not None)
    for target in targets:
        _on_target(run.cases, target, run.stored.run_id)
    if len(targets) > 1:
        found["target"] = tuple(dict.fromkeys(targets))
    asked: Dimension | None = "target" if question.by is None and len(targets) > 1 else question.by  # type: ignore[assignment]  # _compare_parts rejects others
    several = {by: names for by, names in found.items() if len(names) > 1 and asked in (None, by)}
    if several:
        return several
    if asked is None and targets:
        message = f"the run {run.stored.run_id} has one prompt and no variants to compare on the target '{targets[0]}'"
        raise UsageError(message, "to compare two targets, name both: --target BASE --target CANDIDATE")
    if asked is None:
        message = f"the run {run.stored.run_id} has one target, one prompt and no variants to compare"
        raise UsageError(message, "compare it with another run: agentv compare BASE CANDIDATE")
    has = f"has one {asked}, '{found[asked][0]}'" if found[asked] else f"has no {asked}s"
    raise UsageError(f"the run {run.stored.run_id} {has}", f"--by {asked} compares the {asked}s of one run")


def _read(request: CompareRequest, question: ComparisonSettings) -> Iterator[_Run]:
    if not 0 <= question.margin <= 1 or not 0 < question.alpha < 1:  # also false for NaN
        raise UsageError(f"--margin {question.margin:g} and --alpha {question.alpha:g}: both must be between 0 and 1")
    if question.by in ("target", "prompt") and len(request.runs) > 1:
        raise UsageError(
            f"--by {question.by} compares the {question.by}s of one run", f"agentv compare RUN --by {question.by}"
        )
    if question.by is not None and len(request.runs) > 2:
        raise UsageError("--by compares two runs only", "compare the runs in pairs")
    given, common = request.targets, SharedValues()
    if len(given) not in (0, 1, len(request.runs)):
        message = f"{len(given)} targets were given for {len(request.runs)} runs"
        raise UsageError(message, "give --target once for all runs, or once per run in the same order")
    targets = given if len(given) == len(request.runs) else [given[0] if given else None] * len(request.runs)
    for named, target in zip(request.runs, targets, strict=True):
        yield _read_one(named, question, common, target=target, partial=request.partial)
    common.ids.close()


def _read_one(
    named: str, question: ComparisonSettings, common: SharedValues, *, target: str | None = None, partial: bool
) -> _Run:
    place = Path(named)
    stored = open_run(str(place.parent) if place.name == INDEX else named, action="compare", partial=partial)
    refuse_decided(stored, "compare")
    cases = cases_of(read_placed_rows(stored.index, replaced_lines(stored.index)), question.cluster, common)
    if not cases:
        raise UsageError(f"nothing to compare: the run {stored.run_id} has no finished trials")
    missing = max(0, planned_cases(stored.record) - len(cases))
    chosen = _on_target(ChosenCases(cases, range(len(cases))), target, stored.run_id)
    return _Run(stored, chosen, missing, None if target is None else ("target", target))


def _on_target(cases: ChosenCases, target: str | None, run_id: str) -> ChosenCases:
    """Return the cases on a target, or all cases for None."""
    if target is None:
        return cases
    found = cases.of("target", target)
    if not found.numbers:
        names = dict.fromkeys(place.target for place in cases.places)
        hint = did_you_mean(target, names) or f"it holds {', '.join(names)}"
        raise UsageError(f"the run {run_id} has no case on the target '{target}'", hint)
    return found


def _compared(base: _Run, candidate: _Run, question: ComparisonSettings, shared: Container[str]) -> Comparison:
    keyed = KeyedCases(base.cases, shared), KeyedCases(candidate.cases, shared)
    matched = _matched(base, candidate, question, keyed)
    found = _described(base, candidate, question, matched)
    (found,) = _judged([found], [matched])
    found = replace(found, groups=_groups(matched, question))
    shown = list(islice((pair for pair in found.pairs if pair.moved), question.limit))
    if not shown:
        return found
    return replace(found, moved=moved_cases(shown, base.trials, candidate.trials))


def _matched(
    base: _Run, candidate: _Run, question: ComparisonSettings, keyed: tuple[KeyedCases, KeyedCases]
) -> Matched:
    # parts of one run differ in the text of a case by their prompts, not by an edit
    if base.within is not None and base.within == candidate.within:
        return match(*keyed, edited=True, errored=question.errored, within=base.within)
    return match(*keyed, edited=question.edited, errored=question.errored)


def _judged(found: Sequence[Comparison], matched: Sequence[Matched]) -> list[Comparison]:
    """Return the comparisons with verdicts, corrected for their number, not counting those of a run with itself."""
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
    """Return the comparison, without verdict and evidence."""
    runs = f"{base.stored.run_id} and {candidate.stored.run_id}"
    if not matched.common:
        hint = f"one run has {_suites_and_targets(base)}; the other has {_suites_and_targets(candidate)}"
        raise UsageError(f"{runs} have no case in common", hint)
    if len(matched.left_out.edited) == matched.common:
        changes = dict.fromkeys(what for one in matched.left_out.edited.values() for what in one)
        message = f"every case that {runs} have in common was edited between them ({', '.join(changes)})"
        raise UsageError(message, "to compare the edited cases anyway, add --edited")
    if question.cluster is not None:
        keys = (pair.after_key for pair in matched.pairs if pair.before.cluster is None)
        _refuse_lacking([(key.case_id, key.suite) for key in keys], len(matched.pairs), question.cluster)
    same = base.stored.path.resolve() == candidate.stored.path.resolve() and base.part == candidate.part
    return Comparison(
        base=base.label,
        candidate=candidate.label,
        question=question,
        whole=None,
        pairs=matched.pairs.chosen(worst_first(matched.pairs)),
        left_out=matched.left_out,
        same=same,
        edited=matched.edited if base.within is None else 0,
        notes=(*differences(base.stored.record, candidate.stored.record), *matched.settings.notes()),
        lost=matched.lost,
    )


def _suites_and_targets(run: _Run) -> str:
    """Describe the suites and targets of a run, such as `the suite refunds on gpt`."""
    suites, targets = (
        dict.fromkeys(names) for names in zip(*((one.suite, one.target) for one in run.cases.places), strict=True)
    )
    several = "suites" if len(suites) > 1 else "suite"
    return f"the {several} {', '.join(suites)} on {', '.join(targets)}"


def _refuse_lacking(lacking: Sequence[tuple[str, str]], cases: int, cluster: str) -> None:
    """Raise if a case lacks the requested cluster, as it would be treated as independent."""
    if not lacking:
        return
    (case_id, suite), *_ = lacking
    first = f"the first is '{case_id}' of {suite}"
    raise UsageError(f"{len(lacking)} of {cases} cases have no '{cluster}' in their metadata; {first}")


def worst_first(pairs: Sequence[CasePair]) -> list[int]:
    """Return the indexes of the pairs, ordered: newly failing first, then by difference, newly passing last."""
    keys = []
    for pair in pairs:
        suite, case_id, prompt, target, variant = pair.after_key
        rank = -1 if pair.broken else 1 if pair.fixed else 0
        keys.append((rank, pair.delta, suite, case_id, prompt or "", target, variant or ""))
    return sorted(range(len(keys)), key=keys.__getitem__)


def _groups(matched: Matched, question: ComparisonSettings) -> tuple[GroupComparison, ...]:
    """Return the comparisons by suite, tag or variant, corrected for their number."""
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
    """Return the suites, tags or variants that a pair belongs to."""
    if question.by == "variant":
        return (pair.after_key.variant,) if pair.after_key.variant is not None else ()
    return (pair.after_key.suite,) if question.by == "suite" else pair.after.tags


def _matrix(runs: Sequence[_Run], question: ComparisonSettings, shared: Container[str]) -> Matrix:
    keyed = [KeyedCases(run.cases, shared) for run in runs]
    described: dict[tuple[int, int], tuple[Comparison, Matched]] = {}
    for one, other in combinations(range(len(runs)), 2):
        matched = _matched(runs[one], runs[other], question, (keyed[one], keyed[other]))
        if one == 0 or matched.pairs:
            described[one, other] = _described(runs[one], runs[other], question, matched), matched
    found = dict(zip(described, _judged(*map(list, zip(*described.values(), strict=True))), strict=True))
    scores = _scores(found, len(runs))
    shown = dict(list(scores.items())[: question.limit])
    return Matrix(tuple(run.label for run in runs), found, shown, len(scores) - len(shown))


def _scores(found: Mapping[tuple[int, int], Comparison], runs: int) -> dict[CaseKey, tuple[float | None, ...]]:
    """Return the scores of the first run's cases that differ between runs, largest difference first."""
    rows: dict[CaseKey, list[float | None]] = {}
    decided = {pair.before_key for other in range(1, runs) for pair in found[0, other].pairs if pair.by_verdict}
    for other in range(1, runs):
        for pair in found[0, other].pairs:
            before, after = (
                float(one.status == "passed") if pair.before_key in decided else one.score
                for one in (pair.before, pair.after)
            )
            rows.setdefault(pair.before_key, [before, *[None] * (runs - 1)])[other] = after
    spreads = {}
    for key, row in rows.items():
        known = [score for score in row if score is not None]
        spreads[key] = round(max(known) - min(known), 9)
    order = sorted((key for key in rows if spreads[key] > 0), key=lambda key: (-spreads[key], key))
    return {key: tuple(rows[key]) for key in order}


Reader = Callable[[Sequence[int]], Iterable[TrialResult]]
"""Reads the trials whose rows begin at byte offsets."""


def moved_cases(pairs: Sequence[CasePair], base: Reader, candidate: Reader) -> tuple[MovedCase, ...]:
    """Return the pairs with their evidence, reading only the answers of these pairs.

    If a case has several samples, a loss shows the best sample of the base and the worst of the candidate, and a win
    the opposite.
    """
    before = _samples(base, [pair.before for pair in pairs])
    after = _samples(candidate, [pair.after for pair in pairs])
    found = []
    for pair, old_samples, new_samples in zip(pairs, before, after, strict=True):
        got_worse = pair.broken or (pair.delta < 0 and not pair.fixed)
        old = (max if got_worse else min)(old_samples, key=lambda one: one.score or 0.0)
        new = (min if got_worse else max)(new_samples, key=lambda one: one.score or 0.0)
        found.append(MovedCase(pair, _evidence(old), _evidence(new), tuple(_changes(old.scores, new.scores))))
    return tuple(found)


def _samples(read: Reader, cases: Sequence[CaseOutcome]) -> list[list[TrialResult]]:
    """Return the trials of each case, read in one sequential pass."""
    places = sorted(place for case in cases for place in case.places)
    found = dict(zip(places, read(places), strict=True))
    return [[found[place] for place in case.places] for case in cases]


def _evidence(result: TrialResult) -> SampleEvidence:
    return SampleEvidence(result.status, result.score, result.output, result.trial.sample, result.trial.repeat)


def _changes(before: Sequence[Score], after: Sequence[Score]) -> Iterator[CheckChange]:
    """Yield the assertions with different results, in the candidate's order, then those that it lacks."""
    old, new = dict(_numbered(before)), dict(_numbered(after))
    for name in {**new, **old}:
        one, other = old.get(name), new.get(name)
        present = other or one
        if present is None or (one and other and _same_result(one, other)):
            continue
        yield CheckChange(
            name=present.entry.name,
            type=present.entry.type,
            before=_score_of(one),
            after=_score_of(other),
            passed_before=_passed(one),
            passed_after=_passed(other),
            evidence=_evidence_of(other) if other else None,
        )


def _numbered(scores: Iterable[Score]) -> Iterator[tuple[tuple[str, str, int], Score]]:
    """Yield scores keyed by assertion name, type, and the number among assertions with both the same."""
    seen: Counter[tuple[str, str]] = Counter()
    for score in scores:
        name = (score.entry.name, score.entry.type)
        seen[name] += 1
        yield (*name, seen[name]), score


def _same_result(before: Score, after: Score) -> bool:
    if _passed(before) != _passed(after):
        return False
    one, other = _score_of(before), _score_of(after)
    return one == other or (one is not None and other is not None and abs(one - other) <= TOLERANCE)


def _score_of(score: Score | None) -> float | None:
    return None if score is None or score.grade.error else score.grade.score


def _passed(score: Score | None) -> bool | None:
    return None if score is None or score.grade.error else score.grade.passed


def _evidence_of(score: Score) -> str | None:
    """Return the evidence of a verdict: the error, else the first check that agrees with it, else the reason."""
    grade = score.grade
    if grade.error is not None:
        return grade.error.message
    agreeing = (check.evidence or check.text for check in grade.checks if check.passed == grade.passed)
    return next(agreeing, grade.reason)
