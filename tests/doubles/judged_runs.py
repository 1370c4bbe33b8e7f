"""Runs on disk whose answers a judge graded, made by hand."""

from msgspec.structs import replace

from agentv.model.run.grade import AskedJudge, Grade
from agentv.model.run.trial import Score
from doubles.stored_runs import write_run
from doubles.trials import entry, finished, trial

ASKED = AskedJudge("strict", "openai:small", "Is polite", "a" * 64, "b" * 64)


def judged(passed, asked=ASKED, *, name="polite", kind="llm-rubric", scale=None):
    """The grade of a judge: a verdict, or a score on a scale of (lowest, highest, passing) points."""
    score, details = float(passed), {}
    if scale is not None:
        low, high, passing = scale
        points = round(low + score * (high - low))
        passed, details = points >= passing, {"points": points, "scale": [low, high], "pass_threshold": passing}
    grade = Grade(score, passed, reason="as I see it", asked_judge=asked, details=details)
    return Score(entry(kind, name=name), grade, 0.25)


def judged_run(root, verdicts, *, run="20261121T140322Z-aaaa", asked=ASKED, answer="answer {}", scale=None, **given):
    """A run in which a judge gave these verdicts or scores; its id. The answers of the cases are c0, c1, …"""
    (root / ".git").mkdir(exist_ok=True)
    results = []
    for number, passed in enumerate(verdicts):
        score = judged(passed, asked, scale=scale)
        one = finished("passed" if score.grade.passed else "failed", trial=trial(f"c{number}"), scores=[score])
        results.append(replace(one, output=answer.format(number), **given))
    write_run(root / ".agentv" / "results" / run, results)
    return run
