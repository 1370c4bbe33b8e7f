import json
from itertools import count

import pytest

from agentv.model.values.response import TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.targets.replay import COMPARED, Replay
from doubles.asking import answer, answers, request

numbers = count()


@pytest.fixture
def replay(tmp_path):
    def made(*rows):
        file = tmp_path / f"rows{next(numbers)}.jsonl"
        lines = (row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows)
        file.write_bytes(b"".join(lines))
        return Replay(str(file))

    return made


def test_a_row_says_all_that_is_known_of_the_answer(replay):
    row = {
        "test_id": "case",
        "output": "yes",
        "token_usage": {"input": 1, "output": 2, "total": 3, "cached": None},
        "cost_usd": 0.5,
        "duration_ms": 12.5,
        "metadata": {"of": "the case"},
        "context": ["a", {"text": "b", "source": "b.md"}],
        "response_metadata": {"docs": 2},
        "scores": [{"name": "not read"}],
        "error": None,
    }
    context = (RetrievedText("a"), RetrievedText("b", "b.md"))
    expected = TargetResponse("yes", (), TokenUsage(1, 2, 3), 0.5, 12.5, metadata={"docs": 2}, context=context)
    assert answer(replay(row)) == expected


def test_of_a_case_with_turns_every_answer_is_given_again(replay):
    call = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "name": "find", "arguments": {"of": "x"}}]}
    two = {"output": "two", "cost_usd": 0.5, "messages": [call, {"role": "assistant", "content": "two"}]}
    settings = replay({"test_id": "case", "output": "two", "turns": [{"output": "one"}, two]})
    first, second, third, plain = answers(settings, *(request(turn=turn) for turn in (1, 2, 3, None)))
    assert first == TargetResponse("one")
    assert (second.output, second.cost_usd, second.messages[0].tool_calls[0].name) == ("two", 0.5, "find")
    assert third.code == "no-recording"
    assert third.message.endswith("row of 'case': there is no answer to turn 3: the row has 2 'turns'")
    assert plain == TargetResponse("two")


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({}, "no-recording"),
        ({"turns": "one"}, "no-recording"),
        ({"turns": ["one"]}, "no-recording"),
        ({"turns": [{}]}, "bad-answer"),
        ({"turns": [{"output": "one", "messages": [1]}]}, "bad-answer"),
        ({"turns": [{"output": "one", "messages": [{"role": "nobody"}]}]}, "bad-answer"),
    ],
)
def test_a_row_that_does_not_hold_the_turn_is_no_answer_to_it(replay, more, code):
    assert answer(replay({"test_id": "case", "output": "one", **more}), request(turn=1)).code == code


def test_the_last_row_of_a_sample_counts(replay):
    settings = replay(
        {"test_id": "case", "sample": 1, "output": "old"},
        {"test_id": "case", "sample": 2, "output": "other"},
        {"test_id": "case", "sample": 1, "output": "new"},
    )
    found = answers(settings, request(sample=1), request(sample=2), request(sample=3))
    assert [one.output for one in found[:2]] == ["new", "other"]
    assert found[2].code == "no-recording"
    assert "has no sample 3 of 'case'" in found[2].message


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "errored", "output": None},
        {"error": {"code": "timeout", "message": "no answer after 3 s"}},
        {"error": "no answer after 3 s", "output": "half"},
        {"status": "skipped"},
    ],
)
def test_a_row_that_errored_is_no_answer_even_after_one(replay, bad):
    found = answer(replay({"test_id": "case", "output": "stale"}, {"test_id": "case", **bad}))
    assert found.code == "no-recording"
    assert "has no answer: " in found.message
    assert found.message.endswith(("no answer after 3 s", "errored", "skipped"))


def test_among_very_many_none_is_called_nearest(replay):
    settings = replay(*({"id": f"case-{number}", "output": "x"} for number in range(COMPARED + 1)))
    assert answer(settings, request(case_id="case-7")).output == "x"
    assert answer(settings, request(case_id="case-x")).message.endswith("has no answer to 'case-x'")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{not json}\n", ".jsonl:3: "),
        (b'{"id": "x", "output": "cut o', ".jsonl:3: "),
        (b"[]\n", ".jsonl:3: "),
        (b'{"output": "x"}\n', ".jsonl:3: the row has neither 'test_id' nor 'id'"),
        (b'{"id": "x"}\n', ".jsonl:3: the row must have an 'output'"),
        (b'{"id": "x", "output": 5}\n', ".jsonl:3: the row must have an 'output'"),
        (b'{"id": "x", "output": {"a": 1}}\n', ".jsonl:3: the row must have an 'output'"),
        (b'{"id": {"a": 1}, "output": "x"}\n', ".jsonl:3: "),
    ],
)
def test_one_bad_line_spoils_the_file(replay, line, says):
    found = answers(replay({"id": "case", "output": "good"}, b"\n", line), request(), request())
    assert [one.code for one in found] == ["bad-recording"] * 2
    assert says in found[0].message


def test_a_file_that_is_gone_is_a_failure(tmp_path):
    assert answer(Replay(str(tmp_path / "none.jsonl"))).message == "cannot read none.jsonl: No such file or directory"


def test_answers_of_two_targets_are_not_mixed(replay):
    settings = replay(
        {"test_id": "case", "sample": 1, "target": "one", "output": "a"},
        {"test_id": "case", "sample": 1, "target": "two", "output": "b"},
        {"test_id": "case", "sample": 1, "target": "two", "output": "again"},
        {"test_id": "other", "sample": 1, "target": "two", "output": "c"},
    )
    found = answers(settings, request(), request(case_id="other"))
    assert found[0].code == "ambiguous-recording"
    assert found[1].output == "c"


def test_each_prompt_gets_its_own_answer(replay):
    rows = [
        {"test_id": "case", "target": "t", "prompt_id": prompt, "sample": sample, "output": f"{prompt} {sample}"}
        for prompt in ("brief", "long")
        for sample in (1, 2)
    ]
    settings = replay(*rows, {"test_id": "other", "prompt_id": "brief", "output": "x"}, {"id": "plain", "output": "y"})
    found = answers(
        settings,
        *[request(prompt_id=prompt, sample=sample) for prompt in ("brief", "long") for sample in (1, 2)],
        request(case_id="other", prompt_id="long"),
        request(case_id="other"),
        request(case_id="plain", prompt_id="long"),
        request(),
    )
    assert [one.output for one in found[:4]] == ["brief 1", "brief 2", "long 1", "long 2"]
    assert found[4].code == "no-recording", "another prompt's answer is no answer"
    assert [one.output for one in found[5:7]] == ["x", "y"]
    assert found[7].code == "ambiguous-recording"
