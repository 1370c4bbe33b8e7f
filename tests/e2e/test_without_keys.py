"""A replay or regrade needs no keys of targets and judges that it does not call, wherever the keys are configured."""

import pytest

from agentv.testing import ModelServer

pytestmark = pytest.mark.libraries

TARGETS = """\
targets:
  - {name: m, provider: "openai:gpt-5-mini", base_url: "URL", api_key: "{{ env.K }}"}
  - {name: j, provider: "openai:gpt-5-mini", base_url: "URL", api_key: "{{ env.J }}"}
"""
SUITE = """\
target: m
judge: j
tests:
  - {id: a, input: hello, assert: [{contains: hello}CHECK]}
"""
KEYS = {"K": "secret-of-m-1234567890", "J": "secret-of-j-1234567890"}


@pytest.fixture
def recorded(project):
    with ModelServer("hello") as server:
        project.write(".agentv/targets.yaml", TARGETS.replace("URL", server.openai))
        project.write("a.eval.yaml", SUITE.replace("CHECK", ""))
        project.run("eval", "a.eval.yaml", "--record", "c.jsonl", env=KEYS, says="recorded 1 call")
        yield project


@pytest.mark.parametrize("words", [["--replay", "c.jsonl"], ["--regrade"]])
def test_a_key_that_nobody_uses_may_be_unset(recorded, words):
    whole = recorded.run("eval", "a.eval.yaml", *words, env=KEYS)
    ended = recorded.run("eval", "a.eval.yaml", *words)
    assert ended.status == whole.status != 2, ended.stderr
    assert "warning[unset-environment]: environment variable 'K' is not set" in ended.stderr
    assert recorded.run("eval", "a.eval.yaml").status == 2
    assert recorded.run("eval", "a.eval.yaml", "--replay", "c.jsonl", "--replay-mode", "new").status == 2


def test_a_regrading_needs_the_key_of_its_judge(recorded):
    recorded.write("a.eval.yaml", SUITE.replace("CHECK", ", is polite"))
    ended = recorded.run("eval", "a.eval.yaml", "--regrade", status=2)
    assert "error[unset-environment]: environment variable 'J' is not set" in ended.stderr
    assert "warning[unset-environment]: environment variable 'K' is not set" in ended.stderr
