"""A plain function as an assertion type: `agentv assert` grades with it, and Python alone only defines it."""

from __future__ import annotations

import json
import subprocess
import sys

PLAIN = "def plain_words(ctx, *, minimum=3):\n    return len(ctx.output.split()) >= minimum\n"


def test_a_function_without_the_mark_is_graded_with_by_agentv_assert(project):
    file = project.write(".agentv/assertions/plain_words.py", PLAIN)
    for output, status in {"a b c": 0, "a": 1}.items():
        payload = json.dumps({"output": output})
        project.write("payload.json", payload)
        ended = project.run("assert", "plain-words", "--file", "payload.json")
        assert ended.status == status, ended.stderr
        assert json.loads(ended.stdout)["pass"] is (status == 0)
        bare = subprocess.run(
            [sys.executable, str(file)], input=payload, capture_output=True, text=True, timeout=180, check=False
        )
        assert (bare.returncode, bare.stdout, bare.stderr) == (0, "", "")
