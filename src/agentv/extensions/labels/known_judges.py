"""Judges that labels of earlier runs show to be worse than their suite allows, before a run calls anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentv.assertions.judged.questions import Judged
from agentv.assertions.judged.rubric import LlmRubric
from agentv.engine.plan import Plan
from agentv.extensions.labels.answers import as_labelled
from agentv.extensions.labels.checked_answers import CheckedAnswer, JudgeKey
from agentv.extensions.labels.checking import judge_of
from agentv.extensions.labels.corrected_rates import RunLabels
from agentv.extensions.labels.gates import CheckedMinimums
from agentv.extensions.labels.labelling import latest
from agentv.judge.asked import asked_judge
from agentv.model.run.context import AssertionContext
from agentv.model.run.labelled.labels import Label
from agentv.model.run.rubric import Rubric
from agentv.model.run.trial import Trial
from agentv.model.suite.assertion import AssertionEntry


def known_refusals(plan: Plan, labels: Sequence[Label]) -> Iterator[str]:
    """Why judges are refused: one line for each. A judge with too few labels is not known, and may grade a run."""
    judges = _judges_of(plan)
    current = [one for one in latest(labels).values() if one.verdict != "unsure" and one.probability is not None]
    rubrics: dict[JudgeKey, set[str]] = {}
    for judge in judges.values():
        for key, known in judge.rubrics.items():
            rubrics.setdefault(key, set()).update(known)
    elsewhere: dict[JudgeKey, list[Label]] = {key: [] for key in rubrics}
    for one in current:
        if one.rubric_sha256 in rubrics.get(judge_of(one), ()):
            elsewhere[judge_of(one)].append(one)
    known_labels = RunLabels({}, elsewhere, frozenset())
    minimums = {suite.name: suite.judge_minimums for suite in plan.suites}
    for (suite, *_), judge in judges.items():
        least = minimums[suite]
        checks = (CheckedMinimums.of(one, known_labels, least) for one in judge.groups()) if least is not None else ()
        refused = next((one.refusal for one in checks if one.refusal is not None and not one.unknown), None)
        if refused is not None:
            yield f"{suite}: {refused}"


@dataclass(slots=True)
class _PlannedJudge:
    """A judge of a plan.

    Attributes:
        answers: of each assertion one in the place of all.
        rubrics: of each assertion their hashes.
        unknown: assertions that ask what depends on answers, so that not all labels that will count are known yet.
    """

    answers: dict[JudgeKey, CheckedAnswer] = field(default_factory=dict)
    rubrics: dict[JudgeKey, set[str]] = field(default_factory=dict)
    unknown: set[JudgeKey] = field(default_factory=set)

    def add(self, answer: CheckedAnswer, *, is_known: bool) -> None:
        """Add what an assertion will ask."""
        if not is_known:
            self.unknown.add(answer.judge)
            return
        self.answers.setdefault(answer.judge, answer)
        self.rubrics.setdefault(answer.judge, set()).add(answer.key[2])

    def groups(self) -> list[list[CheckedAnswer]]:
        """Answers that are checked together: where some are unknown, those of each other assertion by itself."""
        if self.unknown:
            return [[one] for key, one in self.answers.items() if key not in self.unknown]
        return [list(self.answers.values())]


def _judges_of(plan: Plan) -> dict[tuple[str, str, str], _PlannedJudge]:
    """Suite, model and prompt of each judge → the judge."""
    judges: dict[tuple[str, str, str], _PlannedJudge] = {}
    for trial in plan:
        for entry in trial.case.assertions if trial.suite.judge_minimums is not None else ():
            found = _asked(trial, entry)
            if found is None:
                continue
            answer, is_known = found
            judge = judges.setdefault((trial.suite.name, *answer.judge[1:]), _PlannedJudge())
            judge.add(answer, is_known=is_known)
    return judges


def _asked(trial: Trial, entry: AssertionEntry) -> tuple[CheckedAnswer, bool] | None:
    """What the judge of an assertion will be asked, in the place of an answer, and whether the rubric is known.

    None: no judge grades it, or none by a rubric of its own.
    """
    assertion, case = entry.assertion, trial.case
    if not isinstance(assertion, LlmRubric | Judged):
        return None
    question, is_known = _question(trial, assertion)
    judge = trial.judge_called(assertion.judge)
    if question is None or judge is None:
        return None
    asked = as_labelled(asked_judge(judge.name, judge.model, question, case.criteria), entry.shown_type)
    key = (entry.name, asked.model, asked.prompt_sha256)
    place = (case.id, "", asked.rubric_sha256)
    return CheckedAnswer(place, key, asked.judge, True, None, 1, "", trial.suite.name), is_known


def _question(trial: Trial, assertion: LlmRubric | Judged) -> tuple[Rubric | None, bool]:
    """The question to a judge, and whether it is complete: what a judge is asked may depend on the answer."""
    case = trial.case
    if isinstance(assertion, LlmRubric):
        return assertion.rubric(case.criteria), True
    sent = () if case.turns else case.input
    context = AssertionContext(
        sent, None, expected_output=case.expected_output, criteria=case.criteria, vars=case.vars, case_id=case.id
    )
    found = assertion.question(context)
    return (found, True) if isinstance(found, Rubric) else (assertion.build_rubric(), False)
