"""Answers of a stored run that a judge graded, and random samples of them to label."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.extensions.labels.posterior import even_sizes
from agentv.model.run.cases import ClusterId, TrialCluster, cluster_of
from agentv.model.run.grade import AskedJudge
from agentv.model.run.labels import LabelItem, LabelKey, answer_sha256
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.message import prompt_text, reference_text


class GradedAnswer(Struct, frozen=True):
    """An answer with a judge's grade. Trials of a case with the same answer and verdict are merged into one.

    Attributes:
        input, output, reference: as text; the reference may be empty.
        retrieved: texts retrieved for the answer.
        passed: the judge's verdict, hidden until the answer is labelled.
        trials: number of merged trials.
        target: of the first of these trials; so are `prompt` and `variant`.
        prompt: None if the case has its own input.
        variant: None if the suite has no variants.
    """

    suite: str
    case: str
    target: str
    assertion: str
    input: str
    output: str
    output_sha256: str
    reference: str
    retrieved: tuple[str, ...]
    asked: AskedJudge
    passed: bool
    cluster: ClusterId
    trials: int = 1
    prompt: str | None = None
    variant: str | None = None

    @property
    def key(self) -> LabelKey:
        """The key of its labels."""
        return self.case, self.output_sha256, self.asked.rubric_sha256

    @property
    def judge(self) -> JudgeKey:
        """The assertion, and the model and the prompt of its judge."""
        return self.assertion, self.asked.model, self.asked.prompt_sha256

    @property
    def item(self) -> LabelItem:
        """The item of its labels: the key and the judge's verdict."""
        return self.key, self.asked.model, self.asked.prompt_sha256, self.passed


class DrawnAnswer(Struct, frozen=True):
    """An answer sampled for labelling.

    Attributes:
        probability: probability of being drawn from the answers with the same verdict.
        drawn_from: number of trials with that verdict.
    """

    answer: GradedAnswer
    probability: float
    drawn_from: int


JudgeKey = tuple[str, str, str]
"""An assertion, and the model and the prompt of its judge."""

VerdictKey = tuple[LabelKey, bool]
"""An answer, and the judge's verdict with which it was drawn."""


class CheckedAnswer(Struct, frozen=True):
    """An answer on which a judge is compared with people; it comes from a run, or from labels alone.

    Attributes:
        name: name of the judge; empty if only labels are known.
        trials: number of trials with this answer, possibly weighted.
        found_at: target, prompt and variant of a trial with this answer.
        rubric: the rubric that people label by; empty if only labels are known.
    """

    key: LabelKey
    judge: JudgeKey
    name: str
    passed: bool
    cluster: Hashable
    trials: float
    run: str
    suite: str
    found_at: tuple[str | None, str | None, str | None] = (None, None, None)
    rubric: str = ""

    @classmethod
    def of(cls, answer: GradedAnswer, run: str) -> CheckedAnswer:
        """Return the checked form of a graded answer of a run."""
        return cls(
            answer.key,
            answer.judge,
            name=answer.asked.judge,
            passed=answer.passed,
            cluster=answer.cluster,
            trials=answer.trials,
            run=run,
            suite=answer.suite,
            found_at=(answer.target, answer.prompt, answer.variant),
            rubric=answer.asked.rubric,
        )

    @property
    def verdict_key(self) -> VerdictKey:
        """The key with the judge's verdict: an answer of several trials may have both verdicts."""
        return self.key, self.passed


T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def grouped(found: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Group items by key; keys are in order of first occurrence."""
    groups: dict[K, list[T]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


AnyAnswer = TypeVar("AnyAnswer", GradedAnswer, CheckedAnswer)


def distinct(answers: Iterable[AnyAnswer]) -> list[AnyAnswer]:
    """Merge equal answers with the same verdict, adding up their trials."""
    found: dict[tuple[object, ...], AnyAnswer] = {}
    for one in answers:
        key = (one.suite, one.judge, one.key, one.passed)
        earlier = found.get(key)
        found[key] = one if earlier is None else replace(earlier, trials=earlier.trials + one.trials)
    return list(found.values())


def graded_answers(run: StoredRun, assertion: str | None = None) -> list[GradedAnswer]:
    """Return the judged answers of a run, once for each assertion that graded them.

    Args:
        run: the run.
        assertion: only answers graded by the assertion with this name.

    Raises:
        UsageError: no judge graded an answer.
    """
    names: set[str] = set()

    def graded() -> Iterator[GradedAnswer]:
        for result in run.results():
            for score in result.scores:
                if score.grade.asked_judge is not None:
                    names.add(score.entry.name)
                    if result.output is not None and assertion in (None, score.entry.name):
                        yield graded_answer(result, score)

    found = distinct(graded())
    if not found and assertion is not None and names:
        hint = did_you_mean(assertion, sorted(names)) or f"judged assertions: {', '.join(sorted(names))}"
        raise UsageError(f"the run {run.run_id} has no judged assertion '{assertion}'", hint)
    if not found:
        hint = "labels are of assertions such as llm-rubric; to rate any answer: agentv view --label"
        raise UsageError(f"no judge graded an answer of the run {run.run_id}", hint)
    return found


def draw(answers: Sequence[GradedAnswer], sample: int, seed: int) -> list[DrawnAnswer]:
    """Draw answers to label, evenly from the strata (judge and verdict), in random order.

    With the same seed, a larger sample contains every answer of a smaller one, and a sample of one assertion contains
    the answers of that assertion in a sample of all.
    """
    strata = grouped(answers, lambda one: (*one.judge, one.passed))
    for stratum, members in strata.items():
        members.sort(key=lambda one: (one.suite, one.key))
        _chance(seed, stratum).shuffle(members)
    order = sorted(strata, key=lambda stratum: (_chance(seed, "strata", stratum).random(), stratum))
    drawn: list[DrawnAnswer] = []
    for stratum, size in zip(order, even_sizes(sample, [len(strata[one]) for one in order]), strict=True):
        members = strata[stratum]
        trials = sum(one.trials for one in members)
        drawn += [DrawnAnswer(one, size / len(members), trials) for one in members[:size]]
    _chance(seed, "order").shuffle(drawn)
    return drawn


def _chance(*seed: object) -> random.Random:
    return random.Random(repr(seed))  # noqa: S311  # not used for security


def as_labelled(asked: AskedJudge, kind: str) -> AskedJudge:
    """Return the judge call with the rubric that people label by: the opposite if the assertion's type is `not-…`."""
    if not kind.startswith("not-"):
        return asked
    digest = sha256(f"not {asked.rubric_sha256}".encode()).hexdigest()
    return replace(asked, rubric=f"The opposite must hold of:\n{asked.rubric}", rubric_sha256=digest)


def graded_answer(result: TrialResult, score: Score) -> GradedAnswer:
    """Return the answer of a trial with one judge's grade."""
    trial, grade, output = result.trial, score.grade, result.output or ""
    assert grade.asked_judge is not None  # noqa: S101  # checked by the caller
    return GradedAnswer(
        suite=trial.suite.name,
        case=trial.case.id,
        target=trial.target.name,
        assertion=score.entry.name,
        input=prompt_text(result.input),
        output=output,
        output_sha256=answer_sha256(output),
        reference=reference_text(trial.case.expected_output),
        retrieved=tuple(one.text for one in result.context),
        asked=as_labelled(grade.asked_judge, score.entry.shown_type),
        passed=grade.passed,
        cluster=cluster_of(TrialCluster.of(trial)),
        prompt=trial.case.prompt_id,
        variant=trial.variant_name,
    )
