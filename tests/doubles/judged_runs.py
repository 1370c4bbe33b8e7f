"""Hand-made runs on disk whose answers a judge graded."""

from msgspec.structs import replace

from agentv.model.run.grade import AskedJudge, Grade
from agentv.model.run.trial import Score
from doubles.stored_runs import write_run
from doubles.trials import entry, finished, trial

ASKED = AskedJudge("strict", "openai:small", "Is polite", "a" * 64, "b" * 64)


def judge_grade(passed, asked=ASKED, *, name="polite", kind="llm-rubric"):
    grade = Grade(float(passed), passed, reason="as I see it", asked_judge=asked)
    return Score(entry(kind, name=name), grade, 0.25)


def judged_run(root, verdicts, *, run="20261121T140322Z-aaaa", asked=ASKED, answer="answer {}", **given):
    """Write a run in which a judge gave these verdicts, and return its id. The answers are c0, c1, …"""
    (root / ".git").mkdir(exist_ok=True)
    results = []
    for number, passed in enumerate(verdicts):
        score = judge_grade(passed, asked)
        one = finished("passed" if score.grade.passed else "failed", trial=trial(f"c{number}"), scores=[score])
        results.append(replace(one, output=answer.format(number), **given))
    write_run(root / ".agentv" / "results" / run, results)
    return run
