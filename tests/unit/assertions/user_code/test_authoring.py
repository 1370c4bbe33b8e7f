"""Assertion scripts in real processes, as run by hand, because their visible output matters."""

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from agentv.model.run.context import context_from_json

SEED_PAYLOAD = {
    "input": [{"role": "user", "content": "Say hello"}],
    "input_files": [],
    "criteria": "Multi-word greeting",
    "output": "Hello there, nice to meet you!",
    "expected_output": [],
}
SEED_ANSWER = {"score": 1, "assertions": [{"text": "Output has 6 words", "passed": True}]}

MIN_WORDS = """
    from agentv import AssertionContext, define_assertion

    @define_assertion
    def min_words(ctx: AssertionContext, *, minimum: int = 3):
        words = count(ctx.output or "")
        return {
            "pass": words >= minimum,
            "assertions": [{"text": f"Output has {words} words", "passed": words >= minimum}],
        }

    def count(text):
        return len(text.split())
"""


def run(tmp_path: Path, source: str, stdin: object = SEED_PAYLOAD, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "min_words.py"
    file.write_text(dedent(source))
    text = stdin if isinstance(stdin, str) else json.dumps(stdin)
    command = [sys.executable, *arguments, str(file)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=30)


def test_the_seeds_payload_gives_the_seeds_answer(tmp_path):
    ended = run(tmp_path, MIN_WORDS)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == SEED_ANSWER
    assert list(json.loads(ended.stdout)) == ["score", "assertions"]


def test_config_fills_the_parameters(tmp_path):
    ended = run(tmp_path, MIN_WORDS, {**SEED_PAYLOAD, "config": {"minimum": 7, "other": 1}})
    assert json.loads(ended.stdout)["score"] == 0
    assert ended.returncode == 0


@pytest.mark.parametrize("decorator", ["define_assertion", "define_assertion()", "define_script_grader"])
@pytest.mark.parametrize("prefix", ["", "async "])
def test_every_way_to_define_runs(tmp_path, decorator, prefix):
    source = f"""
        from agentv import define_assertion, define_script_grader

        @{decorator}
        {prefix}def grade(ctx):
            return 0.25
    """
    ended = run(tmp_path, source)
    assert (ended.returncode, json.loads(ended.stdout)) == (0, {"score": 0.25, "assertions": []})


def test_a_grader_may_be_defined_by_a_call_at_the_end(tmp_path):
    source = """
        from agentv import define_script_grader

        def grade(ctx):
            return ctx.metadata == {} and ctx.expected_output == () and ctx.cost_usd is None

        define_script_grader(grade)
    """
    assert json.loads(run(tmp_path, source, {"output": "x"}).stdout)["score"] == 1


@pytest.mark.parametrize(
    ("body", "stdin", "said"),
    [
        ("raise ValueError('no')", SEED_PAYLOAD, "min_words raised ValueError: no (min_words.py:"),
        ("import sys; sys.exit(0)", SEED_PAYLOAD, "called sys.exit"),
        ("return None", SEED_PAYLOAD, "min_words returned nothing"),
        ("return True", "{broken", "the payload on stdin"),
        ("return True", "[1]", "must be a JSON object"),
        ("return True", {"output": 3}, "'output' must be text"),
    ],
)
def test_what_goes_wrong_is_said_and_exits_1(tmp_path, body, stdin, said):
    source = f"from agentv import define_assertion\n@define_assertion\ndef min_words(ctx):\n    {body}\n"
    ended = run(tmp_path, source, stdin)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert said in ended.stderr


def test_two_assertions_in_a_file_are_refused(tmp_path):
    source = """
        from agentv import define_assertion

        @define_assertion
        def a(ctx): return True

        @define_assertion
        def b(ctx): return False
    """
    ended = run(tmp_path, source)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "a and b" in ended.stderr


def test_a_failure_with_a_high_score_cannot_be_read_back_as_a_pass(tmp_path):
    source = """
        from agentv import AssertionScore, define_assertion

        @define_assertion
        def min_words(ctx):
            return AssertionScore(passed=False, score=0.67, details={"words": 2}, reason="too few ☃")
    """
    shown = json.loads(run(tmp_path, source).stdout)
    assert shown == {"pass": False, "score": 0.67, "assertions": [], "reason": "too few ☃", "details": {"words": 2}}


def test_a_block_of_the_authors_own_has_its_say(tmp_path):
    source = """
        import sys
        from agentv import define_assertion

        @define_assertion
        def min_words(ctx): return True

        if __name__ == "__main__":
            print("mine:", len(sys.stdin.read()) > 0)
    """
    ended = run(tmp_path, source)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "mine: True\n", "")


def test_a_file_that_raises_keeps_its_own_error(tmp_path):
    ended = run(tmp_path, MIN_WORDS + "\n    raise RuntimeError('below')\n")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "RuntimeError: below" in ended.stderr
    assert "min_words" not in ended.stderr.splitlines()[-1]


def test_without_a_payload_an_assertion_is_quiet_and_a_grader_is_not(tmp_path):
    ended = run(tmp_path, MIN_WORDS, "")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    source = "from agentv import define_script_grader\n@define_script_grader\ndef grade(ctx): return True\n"
    ended = run(tmp_path, source, "")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the payload on stdin" in ended.stderr


def test_a_program_that_runs_suites_is_no_grader(tmp_path):
    ended = run(
        tmp_path, "import sys, types\nsys.modules['agentv.sdk'] = types.ModuleType('sdk')\n" + dedent(MIN_WORDS)
    )
    assert (ended.returncode, ended.stdout) == (0, "")


def test_a_session_at_a_prompt_is_no_grader(tmp_path):
    assert "score" not in run(tmp_path, MIN_WORDS, SEED_PAYLOAD, "-i").stdout


# --- the wire object, read back


def test_the_wire_object_reads_back():
    payload = {
        "input": [{"role": "user", "content": "hi"}],
        "output": "hello",
        "messages": [{"role": "assistant", "content": "hello", "tool_calls": [{"name": "t", "arguments": {"a": 1}}]}],
        "expected_output": [{"role": "assistant", "content": "hello"}],
        "criteria": "greets",
        "metadata": {"a": 1},
        "vars": {"b": 2},
        "config": {"c": 3},
        "token_usage": {"input": 1, "output": 2},
        "cost_usd": 0.5,
        "duration_ms": 12,
        "workspace_path": "/w",
        "input_files": ["a.md"],
        "trace_summary": {
            "event_count": 7,
            "tool_calls": 1,
            "error_count": 0,
            "llm_call_count": 3,
            "tools": [{"name": "get_order", "calls": 1, "errors": 1}],
            "token_usage": None,
            "cost_usd": 0.5,
            "duration_ms": 12,
        },
        "trace": {"messages": [], "events": [{"type": "x"}], "metrics": {}, "provenance": {}},
    }
    context = context_from_json(payload)
    again = context.payload
    shown = {key: again[key] for key in payload if key not in {"token_usage", "messages"}}
    assert shown == {key: value for key, value in payload.items() if key not in {"token_usage", "messages"}}
    assert again["token_usage"]["total"] == 3
    assert context.messages[0].tool_calls[0].name == "t"


@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"output": 3}, "'output'"),
        ({"metadata": []}, "'metadata'"),
        ({"cost_usd": "1"}, "'cost_usd'"),
        ({"input": [{"role": "boss", "content": ""}]}, "role"),
        ({"token_usage": {"input": -1}}, "token_usage.input"),
        ({"input_files": "a.md"}, "'input_files'"),
        ({"trace_summary": {"event_count": "x"}}, "event_count"),
        ({"trace_summary": {"tools": ["x"]}}, "tools"),
    ],
)
def test_a_key_of_the_wrong_type_is_named(payload, named):
    with pytest.raises(ValueError, match=named):
        context_from_json(payload)
