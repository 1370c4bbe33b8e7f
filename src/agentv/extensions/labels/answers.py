"""Answers of a stored run that a judge graded, and draws of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256

from msgspec.structs import replace

from agentv.app.registries import registries
from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.extensions.labels.graded_answers import DrawnAnswer, GradedAnswer, PointScale
from agentv.extensions.labels.stats.strata import even_sizes
from agentv.model.run.clusters import TrialCluster, cluster_of
from agentv.model.run.grade import AskedJudge, Grade
from agentv.model.run.labelled.labels import answer_sha256
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.message import prompt_text, reference_text
from agentv.registry.table import Registry
from agentv.registry.types import AssertionType

Stratum = tuple[str, str, str, bool]
"""An assertion, the model and the prompt of its judge, and the judge's verdict."""


def asks_judge(written: str, *, alone: bool = False) -> bool:
    """Whether a judge grades the assertions of a type, as a row names it.

    Args:
        written: the type, with `not-` if it was negated.
        alone: answers are graded one by one, so that a grade can be labelled.
    """
    found = _types().find(written.removeprefix("not-"))
    return found is not None and found.options.needs_judge and not (alone and found.options.compares)


@cache
def _types() -> Registry[AssertionType]:
    return registries().assertions


def stratum_of(answer: GradedAnswer) -> Stratum:
    """The stratum that an answer is drawn from."""
    return answer.assertion, answer.asked.model, answer.asked.prompt_sha256, answer.passed


def graded_answers(run: StoredRun, assertion: str | None = None) -> list[GradedAnswer]:
    """The answers of a run that a judge graded, one for each assertion.

    Args:
        run: the run.
        assertion: only those with this name.

    Raises:
        UsageError: there are none.
    """
    found: dict[tuple[object, ...], GradedAnswer] = {}
    names: set[str] = set()
    unrecorded = False
    for result in run.results():
        for score in result.scores:
            if score.grade.asked_judge is None:
                unrecorded |= score.grade.error is None and asks_judge(score.entry.type, alone=True)
                continue
            names.add(score.entry.name)
            if result.output is None or assertion not in (None, score.entry.name):
                continue
            one = graded_answer(result, score)
            key = (one.suite, one.assertion, *one.key, one.asked.prompt_sha256, one.asked.model, one.passed)
            earlier = found.get(key)
            found[key] = one if earlier is None else _together(earlier, one)
    if not found:
        raise _nothing(run, assertion, names, unrecorded=unrecorded)
    scales = {one.asked.rubric_sha256: one.scale for one in found.values() if one.scale is not None}
    return [replace(one, scale=scales.get(one.asked.rubric_sha256)) for one in found.values()]


def draw(answers: Sequence[GradedAnswer], sample: int, seed: int) -> list[DrawnAnswer]:
    """Answers to label, drawn evenly from the strata of all judges, in random order.

    The same seed draws the same answers, with a larger sample those and more, and of one assertion alone also those
    that it draws of all of them.
    """
    strata: dict[Stratum, list[GradedAnswer]] = {}
    for answer in answers:
        strata.setdefault(stratum_of(answer), []).append(answer)
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
    return random.Random(repr(seed))  # noqa: S311  # a sample, no secret


def _together(earlier: GradedAnswer, one: GradedAnswer) -> GradedAnswer:
    """Trials with the same answer and verdict; the points of the judge may differ."""
    trials = earlier.trials + one.trials
    score = (earlier.score * earlier.trials + one.score * one.trials) / trials
    return replace(earlier, trials=trials, score=score, scale=earlier.scale or one.scale)


def _scale(grade: Grade) -> PointScale | None:
    """The scale that the judge says it graded by; a verdict that could not be read has none."""
    match grade.details:
        case {"scale": [int() as low, int() as high], "pass_threshold": int() as passing} if low < high:
            return PointScale(low, high, passing)
    return None


def as_labelled(asked: AskedJudge, kind: str) -> AskedJudge:
    """What people label by, where an assertion of this type asks a judge: the opposite, if it begins with `not-`."""
    if not kind.startswith("not-"):
        return asked
    digest = sha256(f"not {asked.rubric_sha256}".encode()).hexdigest()
    return replace(asked, rubric=f"The opposite must hold of:\n{asked.rubric}", rubric_sha256=digest)


def graded_answer(result: TrialResult, score: Score) -> GradedAnswer:
    """The answer of a trial, with a grade that a judge gave."""
    case = result.trial.case
    asked = score.grade.asked_judge
    scale = _scale(score.grade)
    assert asked is not None  # noqa: S101  # the caller looked
    asked = as_labelled(asked, score.entry.shown_type)
    if score.entry.shown_type.startswith("not-"):
        scale = None  # points for the opposite are no question to a person
    output = result.output or ""
    return GradedAnswer(
        result.trial.suite.name,
        case.id,
        result.trial.target.name,
        score.entry.name,
        prompt_text(result.input),
        output,
        answer_sha256(output),
        reference_text(case.expected_output),
        tuple(one.text for one in result.context),
        asked,
        score.grade.passed,
        score.grade.reason,
        cluster_of(TrialCluster.of(result.trial)),
        score=score.grade.score,
        scale=scale,
        prompt=case.prompt_id,
        variant=None if result.trial.variant is None else result.trial.variant.name,
    )


def _nothing(run: StoredRun, assertion: str | None, names: Iterable[str], *, unrecorded: bool) -> UsageError:
    names = sorted(names)
    if assertion is not None and names:
        hint = did_you_mean(assertion, names) or f"judged assertions: {', '.join(names)}"
        return UsageError(f"the run {run.run_id} has no judged assertion '{assertion}'", hint)
    if unrecorded:
        what = f"the run {run.run_id} does not record by which rubrics its judge decided: an older agentv wrote it"
        return UsageError(what, f"grade its answers again: agentv eval --regrade={run.run_id}")
    return UsageError(
        f"no judge graded an answer of the run {run.run_id}",
        f"labels are of assertions such as llm-rubric; to rate any answer: agentv label {run.run_id} --rate",
    )
