import pytest
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.model.run.grade import Check
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.reports.run.view import RunView
from agentv.store.files.encoding import to_json
from agentv.store.rows.results import read_results, read_results_at
from agentv.store.rows.rows import row_of
from doubles.trials import ROOT, errored_score, finished, graded, scored, trial

SPOKEN = (Message("assistant", "", tool_calls=(ToolCall("find", {"of": "x"}, "1"),)), Message("assistant", "Two"))


def in_conversation(made, identity):
    return replace(made, case=replace(made.case, conversation_id=identity))


def held_against(made, *texts, turns=()):
    reference = tuple(Message("assistant", text) for text in texts)
    return replace(made, case=replace(made.case, expected_output=reference, turns=turns))


RESULTS = [
    finished(trial=held_against(trial("r"), "Within", "30 days.")),
    finished(
        trial=trial("a", tags=("smoke",)),
        cost_usd=0.5,
        token_usage=TokenUsage(1, 2, 3),
        metadata={"k": [1]},
        context=(RetrievedText("a"), RetrievedText("b", "b.md")),
        response_metadata={"docs": [1]},
    ),
    finished(
        "failed", trial=trial("b", repeat=2, sample=2, aggregate="pass_any"), scores=[scored(False, required=True)]
    ),
    finished("errored", trial=trial("c"), error=Failure("timeout", "too late", retryable=True), output=None),
    finished("errored", trial=trial("g"), error=CallFailure("http-status", "HTTP 401", status=401, stops=True)),
    finished("errored", trial=trial("d"), scores=[errored_score(), graded(0.4, False, Check("is kind", False, "No."))]),
    finished(
        trial=in_conversation(trial("f"), "talk"),
        turns=(
            TargetResponse("One", context=(RetrievedText("a", score=0.5),), metadata={"docs": 1}),
            TargetResponse("Two", SPOKEN, TokenUsage(1, 2, 3), 0.0, 1.5),
        ),
        attempts=3,
        retries=(Attempt("http-status", "HTTP 500", 12.5, 700.0),),
    ),
    finished(
        trial=trial("e"),
        scores=[graded(0.9, True, Check("greets", False), negate=True)],
        judge_cost_usd=0.25,
        judge_token_usage=TokenUsage(1, None, 1),
    ),
]


def written(path, results):
    path.write_bytes(b"".join(to_json(row_of(result, ROOT)) + b"\n" for result in results))
    return path


def test_a_trial_that_was_read_back_makes_the_same_row(tmp_path):
    path = written(tmp_path / "index.jsonl", RESULTS)
    assert written(tmp_path / "again.jsonl", read_results(path, ROOT)).read_bytes() == path.read_bytes()


def test_a_trial_that_was_read_back_shows_the_same_findings(tmp_path):
    path = written(tmp_path / "index.jsonl", RESULTS)
    before, after = RunView(8), RunView(8)
    for result in RESULTS:
        before.add(result)
    for result in read_results(path, ROOT):
        after.add(result)
    for kind in ("failed", "errored", "noted"):
        shown = [(one.test_id, one.findings) for one in after.trials(kind)]
        assert shown == [(one.test_id, one.findings) for one in before.trials(kind)]
    assert (after.passed, after.failed, after.errored, after.noted) == (4, 1, 3, 1)
    assert after.cost_usd == 0.75


def test_an_assertion_that_was_read_back_cannot_judge_again(tmp_path):
    (result,) = read_results(written(tmp_path / "index.jsonl", RESULTS[:1]), ROOT)
    with pytest.raises(NotImplementedError):
        result.scores[0].entry.assertion.grade(type("Context", (), {"case_id": "a"}))


def test_the_answers_to_turns_are_read_back(tmp_path):
    *_, result, _ = read_results(written(tmp_path / "index.jsonl", RESULTS), ROOT)
    assert [answer.output for answer in result.turns] == ["One", "Two"]
    assert result.turns[1].messages == SPOKEN
    assert result.trial.case.conversation_id == "talk"


def test_a_last_line_that_was_cut_off_is_passed_over(tmp_path):
    path = written(tmp_path / "index.jsonl", RESULTS[:2])
    path.write_bytes(path.read_bytes()[:-30])
    assert [result.trial.case.id for result in read_results(path, ROOT)] == ["r"]


def test_rows_are_read_where_they_begin(tmp_path):
    path = written(tmp_path / "index.jsonl", RESULTS)
    place = path.read_bytes().index(b"\n") + 1
    assert [result.trial.case.id for result in read_results_at(path, ROOT, [place, 0])] == ["a", "r"]
    with pytest.raises(StoreError, match="no row of a run starts at byte 5"):
        list(read_results_at(path, ROOT, [5]))
