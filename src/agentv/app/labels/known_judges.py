"""Judges that labels of earlier runs show to be worse than their suite allows, before a run calls anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentv.app.labels.answers import as_labelled
from agentv.app.labels.checked_answers import CheckedAnswer, JudgeKey
from agentv.app.labels.checking import judge_of
from agentv.app.labels.corrected_rates import RunLabels
from agentv.app.labels.gates import CheckedMinimums
from agentv.app.labels.labelling import latest
from agentv.assertions.judged.rubric import LlmRubric
from agentv.engine.plan import Plan
from agentv.judge.asked import asked_judge
from agentv.model.run.labelled.labels import Label
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import AssertionEntry


def known_refusals(plan: Plan, labels: Sequence[Label]) -> Iterator[str]:
    """Why judges are refused: one line for each. A judge with too few labels is not known, and may grade a run."""
    current = [one for one in latest(labels).values() if one.verdict != "unsure" and one.probability is not None]
    judges: dict[tuple[str, str, str], dict[JudgeKey, CheckedAnswer]] = {}
    rubrics: dict[JudgeKey, set[str]] = {}
    for trial in plan:
        for entry in trial.case.assertions if trial.suite.judge_minimums is not None else ():
            found = _asked(trial, entry)
            if found is not None:
                judges.setdefault((trial.suite.name, *found.judge[1:]), {}).setdefault(found.judge, found)
                rubrics.setdefault(found.judge, set()).add(found.key[2])
    elsewhere = {
        judge: [one for one in current if judge_of(one) == judge and one.rubric_sha256 in known]
        for judge, known in rubrics.items()
    }
    known_labels = RunLabels({}, elsewhere, frozenset())
    minimums = {suite.name: suite.judge_minimums for suite in plan.suites}
    for (suite, *_), answers in judges.items():
        least = minimums[suite]
        if least is None:
            continue
        checked = CheckedMinimums.of(list(answers.values()), known_labels, least)
        if checked.refusal is not None and not checked.unknown:
            yield f"{suite}: {checked.refusal}"


def _asked(trial: Trial, entry: AssertionEntry) -> CheckedAnswer | None:
    """What the judge of an assertion will be asked, in the place of an answer; None: only its type knows."""
    assertion = entry.assertion
    rubric = assertion.rubric(trial.case.criteria) if isinstance(assertion, LlmRubric) else None
    judge = trial.judge_called(assertion.judge) if isinstance(assertion, LlmRubric) else None
    if rubric is None or judge is None:
        return None
    asked = asked_judge(judge.name, judge.model, rubric, trial.case.criteria)
    asked = as_labelled(asked, entry.shown_type)
    key = (entry.name, asked.model, asked.prompt_sha256)
    return CheckedAnswer(
        (trial.case.id, "", asked.rubric_sha256), key, asked.judge, True, None, 1, "", trial.suite.name
    )
