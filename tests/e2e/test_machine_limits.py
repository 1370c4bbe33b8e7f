"""The limits of the machine: what is not allowed here is asked for less, and said."""

from __future__ import annotations

import subprocess

from agentv.testing import ModelServer
from e2e.command import AGENTV

CASES = "".join(f"  - {{id: c{number}, input: hi, assert: [contains: hello]}}\n" for number in range(400))


def test_no_answer_is_lost_where_few_files_may_be_open(project):
    """Of 400 calls at once, each with a connection, not half may be open."""
    with ModelServer("hello there", delay_s=0.2) as server:
        project.write("a.eval.yaml", f"target: openai:gpt-4o-mini\ntests:\n{CASES}")
        env = {**project.environment, "OPENAI_API_KEY": "sk-one-1234567890", "OPENAI_BASE_URL": server.openai}
        words = f"ulimit -n 400; exec {AGENTV} eval a.eval.yaml -j 400 --out out"
        ended = subprocess.run(
            ["bash", "-c", words], cwd=project.path, env=env, capture_output=True, text=True, check=False, timeout=120
        )
    assert ended.returncode == 0, ended.stderr
    assert "note: 400 workers need more than the 400 open files allowed here; using 90 workers" in ended.stderr
    assert len(project.rows("out")) == len(server.calls) == 400
