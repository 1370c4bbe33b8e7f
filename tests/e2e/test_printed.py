"""What users' code prints in its own process arrives on stderr: to the last line, and without holding anything up."""

from __future__ import annotations

import time

import pytest

SUITE = "target: python:agent.py:answer\ntests:\n  - {id: a, input: x, assert: [contains: fine]}\n"


@pytest.mark.parametrize(
    ("prints", "shown"),
    [
        ("print('last words'); os.kill(os.getpid(), 9)", "last words\n"),
        ("os.write(1, b'no end')", "no end\n"),
        ("os.write(2, b'\\xff\\n')", "\\xff\n"),
        ("print('y' * (3 << 20)); print('after')", "[a printed line of more than 1 MiB was left out]\nafter\n"),
        ("print(('z' * 99 + '\\n') * 300_000 + 'enough')", "\nenough\n"),
        ("subprocess.Popen(['sleep', '30'], start_new_session=True); print('left')", "left\n"),
        ("atexit.register(print, 'at the end')", "at the end\n"),
    ],
)
def test_all_that_is_printed_arrives(project, prints, shown):
    project.write("agent.py", f"import atexit, os, subprocess\ndef answer(prompt):\n    {prints}\n    return 'fine'\n")
    project.write("a.eval.yaml", SUITE)
    before = time.monotonic()
    ended = project.run("eval", "a.eval.yaml")
    assert ended.status == (3 if "kill" in prints else 0), ended.stderr[-1000:]
    assert shown in ended.stderr
    assert time.monotonic() - before < 20
