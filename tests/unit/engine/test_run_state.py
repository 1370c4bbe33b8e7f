from __future__ import annotations

import asyncio

import pytest

from agentv.engine.run_state import RunLimits, RunState
from doubles.trials import finished


def state(*results: str, **limits: object) -> RunState:
    async def main() -> RunState:
        found = RunState(RunLimits(**limits))
        for status in results:
            found.add(finished(status))
        return found

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("results", "limits", "stopped"),
    [
        (["passed", "failed", "errored"], {}, None),
        (["passed", "skipped"], {"fail_fast": True}, None),
        (["passed", "failed"], {"fail_fast": True}, "fail-fast"),
        (["errored"], {"fail_fast": True}, "fail-fast"),
        (["errored", "failed"], {"max_errors": 2}, None),
        (["errored", "failed", "errored"], {"max_errors": 2}, "max-errors"),
        (["passed"], {"decided": lambda result: result.status == "passed"}, "decided"),
        (["failed"], {"decided": lambda result: result.status == "passed"}, None),
        (["errored"], {"fail_fast": True, "max_errors": 1}, "fail-fast"),
    ],
)
def test_a_run_stops_at_the_first_limit_that_is_reached(results, limits, stopped):
    assert state(*results, **limits).stopped == stopped
