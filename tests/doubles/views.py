"""A run with everything that a report must show."""

from agentv.model.run.grade import Check
from agentv.model.run.matrix import Counts
from agentv.model.run.summary import Summary
from agentv.model.run.trial import TrialResult
from agentv.model.values.response import Failure
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.rerun import RerunOptions
from agentv.reports.run.view import RunView
from doubles.trials import errored_score, finished, graded, scored, trial

RESULTS = [
    finished(trial=trial("fine", line=20), cost_usd=0.0012),
    finished(
        "failed",
        trial=trial("window-closed", line=12),
        score=0.4,
        scores=[
            scored(False, text="contains '30 days'", evidence="No. You cannot return it after that.", line=14),
            graded(
                0.4,
                False,
                Check("Explains why the refund was refused", False, 'The answer says only "No."'),
                Check("Is polite", True),
                Check("Names the next step that the customer can take, with a link to the form", False),
                kind="llm-rubric",
                looks_for="3 criteria",
                line=15,
            ),
        ],
    ),
    finished(
        "failed",
        trial=trial("hostile\x1b[2J", line=30, repeat=3, sample=2),
        score=0.9,
        scores=[
            scored(True),
            scored(
                False,
                text="is valid JSON",
                looks_for="",
                kind="is-json",
                evidence="\x1b[31mred\r\nPASSED \u202eevil [bold]not markup[/bold] :smile:",
                line=31,
                required=True,
            ),
        ],
    ),
    finished("failed", trial=trial("gate", line=35), score=0.95, scores=[graded(0.6, True, required=0.7, line=36)]),
    finished("failed", trial=trial("silent", line=37), score=0.3, scores=[graded(0.3, False, line=38)]),
    finished("errored", trial=trial("slow", line=40)),
    finished(
        "errored",
        trial=trial("broken", line=50),
        error=Failure("script-failed", "script: python check.py: the script ended with status 2"),
        scores=[errored_score(line=51, kind="script", looks_for="python check.py")],
    ),
    finished(
        trial=trial("polite", line=60),
        score=0.85,
        scores=[
            graded(0.85, True, Check("Greets the customer by name", False, "Dear Sir or Madam"), line=61, name="tone")
        ],
    ),
]

SUMMARY = Summary(
    run_id="20261121T140322Z-7f3a",
    cases=Counts(9, 2, 4, 2, 1),
    trials=Counts(11, 2, 4, 2, 3),
    pass_rate=1 / 3,
    pass_rate_interval=(0.0968, 0.7000),
    pass_rate_bounds=(0.25, 0.5),
    judged=6,
    interval_clusters=6,
    clustered_by=("case",),
    mean_score_interval=(0.31, 0.88),
    mean_score=0.63333,
    cost_usd=0.0123,
    judge_cost_usd=0.004,
    token_usage=TokenUsage(1, 2, 3),
    duration_ms=3210.0,
)

LOOKS = {"here": "/repo", "results": ".agentv/results/20261121T140322Z-7f3a"}


RECORD = {
    "settings": {"paths": ["evals"], "targets": [], "threshold": None},
    "suites": [{"name": "refunds", "path": "evals/refund.eval.yaml", "targets": [{"name": "gpt"}]}],
}


def view_of(*results: TrialResult) -> RunView:
    view = RunView(len(results))
    for one in results:
        view.add(one)
    return view


def run_view() -> RunView:
    view = RunView(11, rerun=RerunOptions.of(RECORD, here="/repo", root="/repo"))
    for result in RESULTS:
        view.add(result)
    return view
