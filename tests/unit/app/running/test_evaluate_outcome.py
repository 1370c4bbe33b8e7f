"""The exit status of a run (SPEC section 12): 0 only for answers that were graded and are good enough."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from agentv.app.running.evaluate import Outcome
from agentv.app.running.exam_attempt import ExamAttempt
from agentv.errors import ExitStatus
from agentv.model.run.matrix import Counts
from agentv.model.run.summary import GateResult, PartialRun, SequentialComparison
from doubles.listed_runs import SUMMARY

PASSED, FAILED, ERRORED = ExitStatus.PASSED, ExitStatus.FAILED, ExitStatus.ERRORED
NO_ROW = ExamAttempt(suite=None, exam=None, exam_row=None, verdicts={}, error="no space left on the disk")


def gate(suite, failed, *, passed=True):
    return GateResult("corrected", suite, passed, "why", failed=failed)


def against(verdict):
    values = {"difference": (0, 0), "interval": (0, 0), "alpha": 0.05, "margin": 0.05, "drawn": 1, "clusters": 1}
    return SequentialComparison("r0", verdict, **values, cases=2, unpaired=0, errored=0, seed=0)


@pytest.mark.parametrize(
    ("cases", "of_summary", "of_outcome", "status"),
    [
        ({"passed": 9}, {}, {}, PASSED),
        ({}, {}, {}, FAILED),
        ({"passed": 9, "failed": 1}, {}, {}, FAILED),
        ({"passed": 9, "errored": 1}, {}, {}, ERRORED),
        ({"failed": 9, "errored": 1}, {}, {}, ERRORED),
        ({"failed": 9, "errored": 1}, {}, {"interrupted": True}, ExitStatus.INTERRUPTED),
        ({"passed": 9}, {}, {"interrupted": True}, ExitStatus.INTERRUPTED),
        ({"passed": 9, "skipped": 1}, {}, {}, ERRORED),
        ({"passed": 9, "skipped": 1}, {"cut": "max-errors"}, {}, ERRORED),
        ({"failed": 1, "skipped": 1}, {"held_back": 1}, {}, FAILED),
        ({"failed": 1, "skipped": 2}, {"held_back": 1}, {}, ERRORED),
        ({"failed": 1, "skipped": 9}, {}, {"fail_fast": True}, FAILED),
        ({"passed": 1, "skipped": 9}, {}, {"fail_fast": True}, ERRORED),
        ({"errored": 1, "skipped": 9}, {}, {"fail_fast": True}, ERRORED),
        ({"passed": 9, "shown": 1}, {}, {}, FAILED),
        ({"passed": 9, "shown": 1}, {}, {"allow_unchecked": True}, PASSED),
        ({"passed": 9}, {}, {"problem": "cannot write a.csv"}, ERRORED),
        ({"failed": 9}, {}, {"problem": "cannot write a.csv"}, ERRORED),
        ({"passed": 9}, {}, {"exam_attempts": (NO_ROW,)}, ERRORED),
        ({"passed": 9}, {"against": against("worse")}, {}, FAILED),
        ({"passed": 9, "skipped": 1}, {"against": against("worse")}, {}, FAILED),
        ({"passed": 9, "skipped": 1}, {"against": against("inconclusive")}, {}, ERRORED),
        ({"passed": 9}, {"gates": (gate("a", 0, passed=False),)}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 2),)}, {}, PASSED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1),)}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1), gate("a", 1))}, {}, FAILED),
        ({"passed": 8, "failed": 2}, {"gates": (gate("a", 1), gate("b", 1))}, {}, PASSED),
        ({"failed": 1, "errored": 1}, {"gates": (gate("a", 1),)}, {}, ERRORED),
        ({}, {"partial": PartialRun(0, 3, ("shard",), trials=0, of_trials=3)}, {}, PASSED),
        ({}, {"partial": PartialRun(1, 3, ("shard",), trials=1, of_trials=3)}, {}, FAILED),
    ],
)
def test_the_exit_status(cases, of_summary, of_outcome, status):
    counts = Counts(sum(cases.values()), **cases)
    summary = replace(SUMMARY, cases=counts, trials=counts, **of_summary)
    assert Outcome("r", Path("r"), summary, **{"interrupted": False, **of_outcome}).status == status
