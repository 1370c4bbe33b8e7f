"""The report of `agentv mutate`, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, to_builtins
from msgspec.structs import astuple

from agentv.errors import Diagnostic, ExitStatus
from agentv.model.values.formatting import plural
from agentv.model.values.values import Json
from agentv.reports.text import one_line, percent


class Survivor(Struct, frozen=True, rename={"case": "test_id"}):
    """A worse answer that still passes.

    Attributes:
        target, prompt_id, variant, sample: identify the trial whose answer was made worse.
        change: the change, as a clause after `no check noticed that`.
        counts: whether it counts in the score, because the change affects something that the checks name.
        outvoted: names of assertions that failed without failing the case.
        line: line of YAML that was found to fail it and pass the original, or None.
    """

    suite: str
    case: str
    target: str
    prompt_id: str | None
    variant: str | None
    sample: int
    operator: str
    change: str
    counts: bool
    outvoted: tuple[str, ...] = ()
    line: str | None = None


class OperatorCount(Struct, frozen=True):
    """Outcomes of the mutants of one operator.

    Attributes:
        killed, survived: mutants that change something that the checks name.
        others_killed, others_survived: mutants that change nothing that the checks name.
        errored, others_errored: mutants of these two kinds without a verdict, because an assertion errored.
        caught: mutants that a run reports as errors before any check.
        not_graded: mutants on which a judge gave no verdict.
    """

    killed: int = 0
    survived: int = 0
    others_killed: int = 0
    others_survived: int = 0
    errored: int = 0
    others_errored: int = 0
    caught: int = 0
    not_graded: int = 0

    @property
    def total(self) -> int:
        """Number of all mutants."""
        return sum(astuple(self))


class IdleAssertion(Struct, frozen=True):
    """An assertion that failed for no mutant. `mutants`: number of mutants that it graded."""

    suite: str
    name: str
    mutants: int


class OriginalFailure(Struct, frozen=True, rename={"case": "test_id"}):
    """A case whose answer passed in the run but does not pass now, so that it cannot be mutated."""

    suite: str
    case: str
    message: str


class MutationReport(Struct, frozen=True):
    """Result of `agentv mutate` for a run.

    Attributes:
        answers: passing answers that were made worse.
        operators: name → counts, in the order of the catalogue.
        failing: cases whose original answer no longer passes.
        idle: assertions that failed for no mutant.
        judged: number of assertions left out because a model grades them.
        unjudged: number of answers left out because a judge gave no verdict on them.
        min_score: minimum score to pass; None: every score passes.
        notes: what was left out, and why.
    """

    run_id: str
    answers: int
    operators: Mapping[str, OperatorCount]
    survivors: tuple[Survivor, ...]
    failing: tuple[OriginalFailure, ...] = ()
    idle: tuple[IdleAssertion, ...] = ()
    judged: int = 0
    unjudged: int = 0
    min_score: float | None = None
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def counts(self) -> OperatorCount:
        """Sum of the counts of all operators."""
        return OperatorCount(*map(sum, zip(*map(astuple, self.operators.values()), strict=True)))

    @property
    def counted(self) -> int:
        """Number of mutants that count in the score."""
        return self.counts.killed + self.counts.survived

    @property
    def is_partial(self) -> bool:
        """Whether mutants or answers are missing because a judge gave no verdict."""
        return bool(self.counts.not_graded or self.unjudged)

    @property
    def score(self) -> float | None:
        """Share of the counting mutants that were killed; None if no mutant counts."""
        return self.counts.killed / self.counted if self.counted else None

    @property
    def least_score(self) -> float | None:
        """The score if all errored mutants had survived; None if there is no score."""
        return self.counts.killed / (self.counted + self.counts.errored) if self.counted else None

    @property
    def status(self) -> ExitStatus:
        """0 if the score is high enough, 1 if it is too low, 3 if that is unknown."""
        score, least = self.score, self.least_score
        if score is None or least is None or self.is_partial:
            return ExitStatus.ERRORED
        if self.min_score is None or least >= self.min_score:
            return ExitStatus.PASSED
        return ExitStatus.FAILED if score < self.min_score else ExitStatus.ERRORED


MOST = 20
"""Survivors that are shown without `--all`."""

_MOST_NAMES = 10


def render_mutation(found: MutationReport, *, shows_all: bool) -> str:
    """Return the report as text: survivors, outcomes by operator, idle assertions, notes and the score."""
    parts = [
        list(_headline(found)),
        list(_survivors(found, shows_all=shows_all)),
        list(_others(found)) if shows_all else [],
        list(_operators(found)),
        list(_idle(found)),
        list(_failing(found)),
        [one_line(note) for note in found.notes],
        list(_closing(found)),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _headline(found: MutationReport) -> Iterator[str]:
    """Yield the sentence that says how many mutants the checks missed."""
    if survived := found.counts.survived:
        yield f"Your checks missed {survived:,} of {found.counted:,} worse answers."
    elif found.counted:
        yield f"Your checks noticed all {plural(found.counted, 'worse answer', ',')}."


def _survivors(found: MutationReport, *, shows_all: bool) -> Iterator[str]:
    counted = [one for one in found.survivors if one.counts]
    shown = counted if shows_all else counted[:MOST]
    name = _naming(found)
    for one in shown:
        yield f"{name(one)}: no check noticed that {one_line(one.change)}"
        if one.outvoted:
            names = ", ".join(f"'{one_line(name, 80)}'" for name in one.outvoted[:_MOST_NAMES])
            verb = "fails" if len(one.outvoted) == 1 else "fail"
            yield f"  {names} {verb}, but the case still passes: raise its weight or threshold, or make it required"
        if one.line is not None:
            yield f"  add: {one_line(one.line)}"
    if len(counted) > len(shown):
        yield f"and {plural(len(counted) - len(shown), 'more survivor', ',')}: --all or --json lists them"


def _others(found: MutationReport) -> Iterator[str]:
    others = [one for one in found.survivors if not one.counts]
    if others:
        yield "Not counted, because the checks name nothing of what changed:"
        name = _naming(found)
        yield from (f"  {name(one)}: {one_line(one.change)}" for one in others)


def _naming(found: MutationReport) -> Callable[[Survivor], str]:
    """Return a function that names a survivor's case, with what distinguishes its trials."""
    suites, targets = ({getattr(one, name) for one in found.survivors} for name in ("suite", "target"))

    def name(one: Survivor) -> str:
        suite = f"{one.suite} › " if len(suites) > 1 else ""
        target = one.target if len(targets) > 1 else None
        sample = f"sample {one.sample}" if one.sample > 1 else None
        named = ", ".join(part for part in (target, one.variant, one.prompt_id, sample) if part)
        return one_line(f"{suite}{one.case}{f' ({named})' if named else ''}")

    return name


def _operators(found: MutationReport) -> Iterator[str]:
    counts = {name: count for name, count in found.operators.items() if count.total}
    if not counts:
        return
    width = max(map(len, counts))
    yield f"{'operator':{width}}  killed  survived  not counted"
    for name, count in counts.items():
        uncounted = count.total - count.killed - count.survived
        yield f"{name:{width}}  {count.killed:6,}  {count.survived:8,}  {uncounted:11,}"


def _idle(found: MutationReport) -> Iterator[str]:
    if not found.idle:
        return
    yield "Assertions that failed for no mutant:"
    several = len({one.suite for one in found.idle}) > 1
    for one in found.idle[:MOST]:
        suite = f"{one.suite} › " if several else ""
        yield f"  {one_line(suite + one.name, 100)} ({plural(one.mutants, 'mutant', ',')})"
    if len(found.idle) > MOST:
        yield f"  and {len(found.idle) - MOST:,} more"


def _failing(found: MutationReport) -> Iterator[str]:
    if not found.failing:
        return
    yield "Not counted, because the original answer no longer passes:"
    for one in found.failing[:_MOST_NAMES]:
        yield f"  {one_line(one.case)}: {one_line(one.message, 160)}"
    if len(found.failing) > _MOST_NAMES:
        yield f"  and {len(found.failing) - _MOST_NAMES:,} more"


def _closing(found: MutationReport) -> Iterator[str]:
    counts = found.counts
    made = f"{plural(found.answers, 'answer', ',')}, {plural(counts.total, 'mutant', ',')}"
    if counts.not_graded:
        what = plural(counts.not_graded, "mutant", ",")
        yield f"{what} not graded: a judge gave no verdict, or the budget is used up"
    if counts.errored:
        what = plural(counts.errored, "mutant", ",")
        yield f"{what} not counted: an assertion errored, and nothing else failed"
    score, least = found.score, found.least_score
    if not counts.total:
        yield f"{plural(found.answers, 'answer', ',')}, no mutant: the operators fit none of the answers"
        return
    if score is None or least is None:
        why = "none changes what criteria, expected output or assertions name"
        if found.is_partial:
            why = "none that counts was graded"
        elif counts.errored:
            why = "an assertion errored on each that counts"
        yield f"{made}: {why}, so there is no score"
        return
    name = "partial score" if found.is_partial else "score"
    text = f"{made}; {counts.killed:,} of {found.counted:,} that count were noticed: {name} {percent(score)}"
    if found.min_score is not None:
        text += f"; required: {percent(found.min_score)}"
        if score >= found.min_score > least:
            text += f", and it would be {percent(least)} if the errored mutants had survived"
    yield text


def mutation_json(found: MutationReport) -> str:
    """Return the report as one JSON object, with all survivors."""
    operators: dict[str, Json] = {name: to_builtins(count) for name, count in found.operators.items()}
    return json.dumps(
        {
            "run_id": found.run_id,
            "score": found.score,
            "least_score": found.least_score,
            "partial": found.is_partial,
            "min_score": found.min_score,
            "passed": found.status == 0,
            "answers": found.answers,
            "mutants": found.counts.total,
            "counted": found.counted,
            "killed": found.counts.killed,
            "errored": found.counts.errored,
            "not_graded": found.counts.not_graded,
            "operators": operators,
            "survivors": [to_builtins(one) for one in found.survivors],
            "idle_assertions": [to_builtins(one) for one in found.idle],
            "failing_originals": [to_builtins(one) for one in found.failing],
            "judged_assertions_left_out": found.judged,
            "answers_without_verdict": found.unjudged,
            "notes": list(found.notes),
        },
        ensure_ascii=False,
        indent=2,
    )
