"""`agentv compare`: a candidate against a base, or several runs each against each."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from agentv.app.compare.cases import Place, cases_of, shared_names
from agentv.app.compare.evidence import moved_cases, worst_first
from agentv.app.compare.judging import corrected, judge
from agentv.app.compare.matching import Matched, match
from agentv.app.compare.records import differences, planned_cases
from agentv.app.compare.settings import setting_notes
from agentv.app.results.stored import StoredRun, open_run
from agentv.errors import UsageError
from agentv.model.comparison import (
    CaseKey,
    CaseOutcome,
    Comparison,
    Group,
    Judgement,
    Matrix,
    Pair,
    Question,
    RunLabel,
)
from agentv.model.trial import TrialResult
from agentv.spec.nearest import did_you_mean
from agentv.store.current import replaced_lines
from agentv.store.directory import INDEX
from agentv.store.outcomes import read_outcomes
from agentv.store.results import read_results_at


@dataclass(frozen=True, slots=True)
class Asked:
    """Which runs are compared.

    Attributes:
        runs: an id, a directory, an `index.jsonl`, or `last`; the base first.
        targets: the one that is taken of each run, or one for all of them; empty: all that they hold.
        partial: take runs that are still being written.
    """

    runs: tuple[str, ...]
    targets: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class _Run:
    """One of them, read."""

    stored: StoredRun
    target: str | None
    cases: Mapping[Place, CaseOutcome]
    missing: int

    @property
    def label(self) -> RunLabel:
        targets = dict.fromkeys(place.target for place in self.cases)
        return RunLabel(self.stored.run_id, str(self.stored.path), tuple(targets), len(self.cases), self.missing)

    def trials(self, places: Sequence[int]) -> Iterator[TrialResult]:
        """The trials whose rows begin there."""
        return read_results_at(self.stored.index, self.stored.root, places)

    def keyed(self, shared: Container[str]) -> dict[CaseKey, CaseOutcome]:
        return {place.key(shared): case for place, case in self.cases.items()}


def compare(asked: Asked, question: Question) -> Comparison | Matrix:
    """Two runs side by side; of more than two a matrix.

    Raises:
        UsageError: there are fewer than two, one is not there, is being written or holds nothing, or one has no case in
            common with the base.
        StoreError: a run cannot be read.
    """
    runs = list(_read(asked, question))
    shared = shared_names(run.cases for run in runs)
    if len(runs) == 2:
        return _compared(runs[0], runs[1], question, shared)
    return _matrix(runs, question, shared)


def _read(asked: Asked, question: Question) -> Iterator[_Run]:
    if len(asked.runs) < 2:
        raise UsageError("a comparison takes two runs, or more", "agentv compare BASE CANDIDATE")
    if not 0 <= question.margin <= 1 or not 0 < question.alpha < 1:  # `nan` is a number to Python
        raise UsageError(f"--margin {question.margin:g} and --alpha {question.alpha:g}: both are shares of 0 to 1")
    if question.by is not None and len(asked.runs) > 2:
        raise UsageError("--by is for two runs", "compare them two by two")
    targets = _targets(asked)
    for named, target in zip(asked.runs, targets, strict=True):
        place = Path(named)
        stored = open_run(str(place.parent) if place.name == INDEX else named, doing="compare", partial=asked.partial)
        cases = cases_of(read_outcomes(stored.index, replaced_lines(stored.index)), question.cluster)
        if not cases:
            raise UsageError(f"there is nothing to compare: the run {stored.run_id} holds no finished trial")
        missing = max(0, planned_cases(stored.record) - len(cases))
        yield _Run(stored, target, _only(cases, target, stored.run_id), missing)


def _targets(asked: Asked) -> Sequence[str | None]:
    if len(asked.targets) in (0, 1):
        return [asked.targets[0] if asked.targets else None] * len(asked.runs)
    if len(asked.targets) == len(asked.runs):
        return asked.targets
    message = f"{len(asked.targets)} targets are named for {len(asked.runs)} runs"
    raise UsageError(message, "give --target once for all runs, or once for each of them, in their order")


def _only(cases: Mapping[Place, CaseOutcome], target: str | None, run_id: str) -> Mapping[Place, CaseOutcome]:
    """The cases on a target."""
    if target is None:
        return cases
    found = {place: case for place, case in cases.items() if place.target == target}
    if not found:
        names = dict.fromkeys(place.target for place in cases)
        hint = did_you_mean(target, names) or f"it holds {', '.join(names)}"
        raise UsageError(f"the run {run_id} holds no case on the target '{target}'", hint)
    return found


def _compared(base: _Run, candidate: _Run, question: Question, shared: Container[str]) -> Comparison:
    matched = match(base.keyed(shared), candidate.keyed(shared), edited=question.edited)
    found = _judged(base, candidate, question, matched)
    shown = [pair for pair in found.pairs if pair.moved][: question.limit]
    if not shown:
        return found
    return replace(found, moved=moved_cases(shown, base.trials, candidate.trials))


def _judged(base: _Run, candidate: _Run, question: Question, matched: Matched) -> Comparison:
    """The comparison, without evidence."""
    _refuse_strangers(base, candidate, matched)
    same = base.stored.path.resolve() == candidate.stored.path.resolve() and base.target == candidate.target
    whole = judge(matched.pairs, question) if matched.pairs else None
    return Comparison(
        base=base.label,
        candidate=candidate.label,
        question=question,
        whole=replace(whole, verdict="equivalent") if same and whole else whole,
        pairs=tuple(sorted(matched.pairs, key=worst_first)),
        left_out=matched.left_out,
        groups=_groups(matched.pairs, question),
        same=same,
        edited=matched.edited,
        notes=(
            *differences(base.stored.record, candidate.stored.record),
            *setting_notes(matched.pairs),
            *_unclustered(matched.pairs, question),
        ),
        lost=matched.lost,
    )


def _refuse_strangers(base: _Run, candidate: _Run, matched: Matched) -> None:
    runs = f"{base.stored.run_id} and {candidate.stored.run_id}"
    if not matched.common:
        hint = f"the one holds {_holds(base)}; the other {_holds(candidate)}"
        raise UsageError(f"{runs} have no case in common", hint)
    if len(matched.left_out.edited) == matched.common:
        changes = dict.fromkeys(what for one in matched.left_out.edited.values() for what in one)
        message = f"every case that {runs} have in common was edited in between ({', '.join(changes)})"
        raise UsageError(message, "where that edit is what you want to compare, give --edited")


def _holds(run: _Run) -> str:
    """`the suite refunds on gpt`."""
    suites, targets = (
        dict.fromkeys(names) for names in zip(*((one.suite, one.target) for one in run.cases), strict=True)
    )
    several = "suites" if len(suites) > 1 else "suite"
    return f"the {several} {', '.join(suites)} on {', '.join(targets)}"


def _unclustered(pairs: Sequence[Pair], question: Question) -> Iterator[str]:
    """That some cases stand alone. Where all of them do, the key is misspelt, and the interval would be too short."""
    alone = sum(pair.before.cluster is None for pair in pairs)
    if question.cluster is None or not alone:
        return
    if alone == len(pairs):
        raise UsageError(f"no case that both runs judged has '{question.cluster}' in its metadata")
    yield f"{alone} of {len(pairs)} cases have no '{question.cluster}' in their metadata, and stand alone"


def _groups(pairs: Sequence[Pair], question: Question) -> tuple[Group, ...]:
    """The comparisons of parts, corrected for their number."""
    if question.by is None or not pairs:
        return ()
    parts: dict[str, list[Pair]] = {}
    for pair in pairs:
        for name in (pair.after_key.suite,) if question.by == "suite" else pair.after.tags:
            parts.setdefault(name, []).append(pair)
    if not parts:
        raise UsageError("there is nothing to compare by tag: no case that both runs judged has one")
    judged = corrected([judge(part, question) for part in parts.values()], question.alpha)
    return tuple(sorted(map(Group, parts, judged), key=lambda group: group.name))


def _matrix(runs: Sequence[_Run], question: Question, shared: Container[str]) -> Matrix:
    keyed = [run.keyed(shared) for run in runs]
    found: dict[tuple[int, int], Comparison] = {}
    for one, other in combinations(range(len(runs)), 2):
        matched = match(keyed[one], keyed[other], edited=question.edited)
        if one == 0 or matched.pairs:
            found[one, other] = _judged(runs[one], runs[other], question, matched)
    scores = _scores(found, len(runs))
    shown = dict(list(scores.items())[: question.limit])
    return Matrix(tuple(run.label for run in runs), _corrected(found, question), shown, len(scores) - len(shown))


def _corrected(found: Mapping[tuple[int, int], Comparison], question: Question) -> dict[tuple[int, int], Comparison]:
    """The comparisons of whole runs, corrected for their number; those of a run with itself are none."""
    real = {place: one.whole for place, one in found.items() if one.whole is not None and not one.same}
    wholes: dict[tuple[int, int], Judgement] = dict(
        zip(real, corrected(list(real.values()), question.alpha), strict=True)
    )
    return {place: replace(one, whole=wholes.get(place, one.whole)) for place, one in found.items()}


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
