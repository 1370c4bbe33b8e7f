"""Whatever users' code raises is the failure of one trial or one grade, and never the end of the run."""

from __future__ import annotations

import pytest

RAISES = """
import asyncio, pytest

class Own(BaseException):
    pass

def answer(prompt):
    kinds = {
        "base": Own("mine"),
        "generator": GeneratorExit(),
        "interrupt": KeyboardInterrupt(),
        "exit": SystemExit(0),
        "group": BaseExceptionGroup("several", [KeyboardInterrupt(), SystemExit(0)]),
        "cancelled": asyncio.CancelledError(),
    }
    if prompt == "outcome":
        pytest.fail("not good enough")
    if prompt in kinds:
        raise kinds[prompt]
    return prompt

async def later(prompt):
    await asyncio.sleep(0.001)
    return answer(prompt)
"""
KINDS = ("base", "generator", "interrupt", "exit", "group", "cancelled", "outcome")


def cases(assertion: str) -> str:
    shown = (f"  - {{id: {kind}, input: {kind}, assert: [{assertion}]}}\n" for kind in (*KINDS, "fine"))
    return f"tests:\n{''.join(shown)}"


@pytest.mark.parametrize("subject", ["target", "assertion"])
def test_every_kind_of_exception_is_one_failure(project, subject):
    project.write("raises.py", RAISES)
    for name, function in (("now", "def now"), ("later", "async def later")):
        call = "await raises.later(ctx.output)" if name == "later" else "raises.answer(ctx.output)"
        text = f"import raises\n{function}(ctx):\n    {call}\n    return True\n"
        project.write(f".agentv/assertions/{name}.py", text)
    project.write(".agentv/assertions/raises.py", RAISES)
    if subject == "target":
        project.write("a.eval.yaml", f"target: python:raises.py:answer\n{cases('{type: min-tokens, value: 1}')}")
        project.write("b.eval.yaml", f"target: python:raises.py:later\n{cases('{type: min-tokens, value: 1}')}")
    else:
        project.write("a.eval.yaml", f"target: echo\n{cases('{type: now}')}")
        project.write("b.eval.yaml", f"target: echo\n{cases('{type: later}')}")
    ended = project.run("eval", "a.eval.yaml", "b.eval.yaml", "--workers", "1")
    assert ended.status == 3, ended.stderr
    rows = project.rows()
    assert len(rows) == 2 * len(KINDS) + 2
    assert {row["test_id"] for row in rows if row["status"] == "passed"} == {"fine"}
    errored = [row for row in rows if row["status"] == "errored"]
    assert len(errored) == 2 * len(KINDS)
    if subject == "target":
        assert {row["error"]["code"] for row in errored} == {"target-raised"}
