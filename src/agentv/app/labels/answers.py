"""Answers of a stored run that a judge graded, and draws of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from agentv.app.results.stored import StoredRun
from agentv.authoring.source.nearest import did_you_mean
from agentv.errors import UsageError
from agentv.model.run.clusters import TrialCluster, cluster_of
from agentv.model.run.grade import AskedJudge
from agentv.model.run.labels import DrawnAnswer, GradedAnswer
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.message import prompt_text, reference_text
from agentv.stats.judges.corrected import even_split

_JUDGED = ("llm-rubric", "factuality", "closed-qa", "answer-relevance", "context-", "trajectory:goal-success")


Stratum = tuple[str, str, str, bool]
"""An assertion, the model and the prompt of its judge, and the judge's verdict."""


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
                unrecorded |= score.grade.error is None and score.entry.type.removeprefix("not-").startswith(_JUDGED)
                continue
            names.add(score.entry.name)
            if result.output is None or assertion not in (None, score.entry.name):
                continue
            one = _answer(result, score)
            key = (one.suite, one.assertion, *one.key, one.asked.prompt_sha256, one.asked.model, one.passed)
            earlier = found.get(key)
            found[key] = one if earlier is None else replace(earlier, trials=earlier.trials + 1)
    if not found:
        raise _nothing(run, assertion, names, unrecorded=unrecorded)
    return list(found.values())


def draw(answers: Sequence[GradedAnswer], sample: int, seed: int) -> list[DrawnAnswer]:
    """Answers to label, drawn evenly from both verdicts of the judge, in random order.

    The same seed draws the same answers, and with a larger sample those and more.
    """
    strata = [
        sorted((one for one in answers if one.passed is verdict), key=lambda one: (one.suite, one.assertion, *one.key))
        for verdict in (True, False)
    ]
    for place, one in enumerate(strata):
        random.Random(f"{seed} {place}").shuffle(one)  # noqa: S311  # a sample, no secret
    trials: Counter[Stratum] = Counter()
    for answer in answers:
        trials[stratum_of(answer)] += answer.trials
    drawn: list[DrawnAnswer] = []
    for one, size in zip(strata, even_split(sample, len(strata[0]), len(strata[1])), strict=True):
        drawn += [DrawnAnswer(answer, size / len(one), trials[stratum_of(answer)]) for answer in one[:size]]
    random.Random(f"{seed} order").shuffle(drawn)  # noqa: S311  # as above
    return drawn


def as_labelled(asked: AskedJudge, kind: str) -> AskedJudge:
    """What people label by, where an assertion of this type asks a judge: the opposite, if it begins with `not-`."""
    if not kind.startswith("not-"):
        return asked
    digest = sha256(f"not {asked.rubric_sha256}".encode()).hexdigest()
    return replace(asked, rubric=f"The opposite must hold of:\n{asked.rubric}", rubric_sha256=digest)


def _answer(result: TrialResult, score: Score) -> GradedAnswer:
    case = result.trial.case
    asked = score.grade.asked_judge
    assert asked is not None  # noqa: S101  # the caller looked
    asked = as_labelled(asked, score.entry.type)
    output = result.output or ""
    return GradedAnswer(
        result.trial.suite.name,
        case.id,
        result.trial.target.name,
        score.entry.name,
        prompt_text(result.input),
        output,
        sha256(output.encode(errors="surrogatepass")).hexdigest(),
        reference_text(case.expected_output),
        tuple(one.text for one in result.context),
        asked,
        score.grade.passed,
        score.grade.reason,
        cluster_of(TrialCluster.of(result.trial)),
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
        f"no judge graded an answer of the run {run.run_id}", "labels are of assertions such as llm-rubric"
    )
