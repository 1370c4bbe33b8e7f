"""Streamed answers end to end: rows, exports, cassettes, checks, and interrupted streams."""

import csv

import pytest

from agentv.testing import Answer, ModelServer, SlowDrip, StoppedStream

pytestmark = pytest.mark.libraries

TARGET = """target:
  {{name: fast, provider: openai, model: gpt-4o, base_url: "{url}", api_key: "{{{{ env.KEY }}}}", stream: true,
    retry: {{max_retries: 1, retry_initial_delay_ms: 1}}}}
"""
SINGLE = """  - id: single
    input: hello
    assert: [{latency: {first_token_ms: 20000, threshold: 30000}}]
"""
TURNS = """  - id: turns
    turns: [{input: first}, {input: second}]
    assert: [{latency: {first_token_ms: 20000}}, {latency: {first_token_ms: 1}, name: too fast}]
"""
KEYS = {"KEY": "sk-target-1234567890"}


def test_the_time_of_the_first_token_is_in_rows_exports_and_cassettes(project):
    def reply(call):
        return SlowDrip(0.5, Answer("two")) if "second" in call.text else Answer("one")

    with ModelServer(reply) as server:
        project.write("fast.eval.yaml", f"{TARGET.format(url=server.openai)}tests:\n{SINGLE}{TURNS}")
        ended = project.run("eval", "fast.eval.yaml", "--record", "c.jsonl", "-o", "rows.csv", "--verbose", env=KEYS)
    rows = {row["test_id"]: row for row in project.rows()}
    assert [one["pass"] for one in rows["turns"]["scores"]] == [True, False], ended.stdout + ended.stderr
    assert rows["single"]["status"] == "passed"
    assert "first token after" in ended.stdout + ended.stderr
    first, second = (turn["time_to_first_token_ms"] for turn in rows["turns"]["turns"])
    assert rows["turns"]["time_to_first_token_ms"] == max(first, second) == second >= 90
    with (project.path / "rows.csv").open(newline="") as file:
        cells = {row["test_id"]: row["time_to_first_token_ms"] for row in csv.DictReader(file)}
    assert cells == {name: str(row["time_to_first_token_ms"]) for name, row in rows.items()}
    project.run("eval", "fast.eval.yaml", "--replay", "c.jsonl", env=KEYS)  # without a server
    again = {row["test_id"]: row["time_to_first_token_ms"] for row in project.rows()}
    assert again == {name: row["time_to_first_token_ms"] for name, row in rows.items()}


def test_what_came_of_a_stream_that_broke_off_is_in_the_row(project):
    with ModelServer([Answer("one"), *[StoppedStream()] * 9]) as server:
        project.write("fast.eval.yaml", f"{TARGET.format(url=server.openai)}tests:\n{TURNS}")
        project.run("eval", "fast.eval.yaml", env=KEYS)
    (row,) = project.rows()
    assert (row["status"], row["error"]["code"], row["attempts"]) == ("errored", "bad-answer", 3)
    assert row["output"] == "this answer stops in"
    assert row["error"]["message"].startswith("turn 2: the stream ended early")
