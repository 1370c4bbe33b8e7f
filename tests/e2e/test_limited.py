"""A server that refuses calls for its limits: the log says so at once, and when the next call will be made."""

from __future__ import annotations

import re

from agentv.testing import ModelServer, Status

SUITE = """
target: {{name: gpt, provider: openai, model: gpt-4o, base_url: "{url}"}}
tests:
  - {{id: one, input: hi, assert: [contains: "yes"]}}
"""


def test_a_log_says_that_a_server_limits_calls_while_it_does(project):
    with ModelServer([Status(429, retry_after="2"), "yes"]) as server:
        project.write("limited.eval.yaml", SUITE.format(url=server.openai))
        ended = project.run("eval", "limited.eval.yaml", env={"OPENAI_API_KEY": "sk-some-key-of-a-test"})
    wanted = r"^0/1 trials: .* 1 running, 0 waiting; gpt limits requests \(429\), next call in [12] s$"
    assert re.search(wanted, ended.stderr, re.MULTILINE), ended.stderr
    assert ended.status == 0
