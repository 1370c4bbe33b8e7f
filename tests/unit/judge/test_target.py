import asyncio
import json

import pytest

from agentv.judge.target import TargetJudge
from agentv.model.grade import Check
from agentv.model.response import Failure, TargetResponse, TokenUsage
from agentv.model.rubric import JudgeFailure, Rubric, RubricItem, Verdict
from doubles.judges import Replying, Saying, answered, honest, shown_answer

PROSE = Rubric("freeform", text="is right", temperature=0.3)
LIST = Rubric("checklist", items=(RubricItem("r1", "says 42"),))
GOOD = '{"score": 0.9, "reason": "right"}'


def assess(target, rubric=PROSE, context=None):
    judge = TargetJudge(target, "strict", timeout_s=7, env={"KEY": "k"})
    return asyncio.run(judge.assess(rubric, context or answered("42", case_id="add", vars={"a": 1}, metadata={"m": 2})))


def test_a_verdict_comes_with_the_judges_words():
    verdict = assess(Saying([GOOD]))
    assert verdict == Verdict(0.9, (), "right", GOOD)


def test_a_target_that_is_awaited_serves_as_well():
    checks = {"checks": [{"id": "r1", "satisfied": True, "reasoning": "it does"}]}
    verdict = assess(Replying(honest(checks)), LIST)
    assert (verdict.score, verdict.satisfied) == (1.0, True)
    assert verdict.checks == (Check("says 42", True, "it does"),)


def test_what_the_target_is_asked():
    target = Saying([GOOD])
    assess(target)
    (request,) = target.requests
    assert (request.case_id, request.attempt, request.timeout_s, request.temperature) == ("add", 1, 7, 0.3)
    assert (request.vars, request.metadata, request.env) == ({"a": 1}, {"m": 2}, {"KEY": "k"})
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.prompt.startswith("system:\n")
    assert "<answer-" in request.prompt


def test_an_unreadable_reply_is_asked_for_once_more():
    target = Saying(["It is fine.", GOOD])
    assert assess(target).score == 0.9
    second = target.requests[1]
    assert second.attempt == 2
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert "it holds no JSON object with the key 'score'" in second.messages[3].text


@pytest.mark.parametrize("reply", ["It is fine.", "", '{"score": 2}', '{"score": NaN}', '{"score": 1} {"score": 0}'])
def test_a_judge_that_cannot_be_read_twice_gives_no_verdict(reply):
    target = Saying([reply])
    failure = assess(target)
    assert isinstance(failure, JudgeFailure)
    assert failure.code == "unreadable-verdict"
    assert failure.reply == reply
    assert reply[:20] in failure.message
    assert "judge 'strict'" in failure.message
    assert len(target.requests) == 2


def test_an_answer_of_nothing_is_no_verdict():
    failure = assess(Saying([TargetResponse(None)]))
    assert (failure.code, failure.reply) == ("unreadable-verdict", "")


def test_a_long_reply_is_cut_and_an_unspeakable_one_made_speakable():
    failure = assess(Saying(["\ud800\u202e" + "x" * 10_000]))
    assert len(failure.reply) == 4_000
    assert failure.reply.startswith("?")
    assert failure.reply.endswith("…")
    assert len(failure.message) < 400
    assert "\u202e" not in failure.message


@pytest.mark.parametrize(("code", "shown"), [("timeout", "judge-timeout"), ("judge-busy", "judge-busy")])
def test_a_failure_of_the_target_is_passed_on(code, shown):
    target = Saying([Failure(code, "took 7 s", retryable=True)])
    failure = assess(target)
    assert (failure.code, failure.message, failure.retryable) == (shown, "judge 'strict' failed: took 7 s", True)
    assert len(target.requests) == 1


def test_what_all_calls_took_is_added_up():
    first = TargetResponse("?", token_usage=TokenUsage(10, 5, 15), cost_usd=0.25)
    second = TargetResponse(GOOD, token_usage=TokenUsage(30, 1, 31), cost_usd=0.5)
    verdict = assess(Saying([first, second]))
    assert (verdict.token_usage, verdict.cost_usd) == (TokenUsage(40, 6, 46), 0.75)
    unknown = assess(Saying([first, GOOD]))
    assert (unknown.token_usage, unknown.cost_usd) == (TokenUsage(10, 5, 15), 0.25)
    failed = assess(Saying([first, Failure("timeout", "took 7 s")]))
    assert (failed.token_usage, failed.cost_usd, failed.reply) == (TokenUsage(10, 5, 15), 0.25, "?")
    unreadable = assess(Saying([first]))
    assert (unreadable.token_usage, unreadable.cost_usd) == (TokenUsage(20, 10, 30), 0.5)
    free = assess(Saying([GOOD]))
    assert (free.token_usage, free.cost_usd) == (None, None)


@pytest.mark.parametrize(
    ("prompt", "code"),
    [
        ("{{ nothing }} {{ output }}", "undefined-variable"),
        ("{{ env.NO_SUCH }} {{ output }}", "unset-environment"),
        ("{{ output", "bad-template"),
        ("{{ 1 / 0 }} {{ output }}", "bad-template"),
        ("Is it good?", "judge-prompt-without-output"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_a_failure_before_anything_is_asked(prompt, code):
    target = Saying([GOOD])
    failure = assess(target, Rubric("freeform", prompt=prompt, prompt_path="/evals/judge.md"))
    assert failure.code == code
    assert failure.message.startswith("the judge prompt /evals/judge.md: ")
    assert not target.requests


def test_prompts_written_for_agentv_work():
    prompt = "Q: {{question}}\nA: {{candidate_answer}}\nRef: {{reference_answer}}\nReply as JSON."
    reply = '{"score": 0.5, "hits": ["adds"], "misses": ["no words"], "reasoning": "half"}'
    verdict = assess(Saying([reply]), Rubric("freeform", prompt=prompt))
    assert (verdict.score, verdict.reason) == (0.5, "half")
    assert verdict.checks == (Check("adds", True), Check("no words", False))


def test_calls_may_overlap_and_each_gets_its_own_verdict():
    async def run():
        judge = TargetJudge(Replying(_scored_by_answer), "strict")
        return await asyncio.gather(*(judge.assess(PROSE, answered(f"0.{n}")) for n in range(10)))

    assert [verdict.score for verdict in asyncio.run(run())] == [n / 10 for n in range(10)]


def _scored_by_answer(request):
    return json.dumps({"score": float(shown_answer(request)), "reason": "as it says"})


def test_a_cancelled_call_is_cancelled():
    class Hanging(Saying):
        async def answer(self, request):
            self.requests.append(request)
            await asyncio.Event().wait()

    async def run():
        judge = TargetJudge(target := Hanging([]), "strict")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await judge.assess(PROSE, answered("42"))
        return target

    assert len(asyncio.run(run()).requests) == 1


def test_a_bare_question_gets_the_judges_words():
    target = Saying(["YES"])
    answer = asyncio.run(TargetJudge(target, "strict", timeout_s=7).ask("Would you?"))
    assert isinstance(answer, TargetResponse)
    assert answer.output == "YES"
    assert (target.requests[0].prompt, target.requests[0].timeout_s) == ("Would you?", 7)


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("", "judge-empty-output"),
        (" \n", "judge-empty-output"),
        (TargetResponse(None), "judge-empty-output"),
        (Failure("timeout", "7 s"), "judge-timeout"),
    ],
)
def test_a_bare_question_without_an_answer_is_a_failure(reply, code):
    failure = asyncio.run(TargetJudge(Saying([reply]), "strict").ask("Would you?"))
    assert isinstance(failure, Failure)
    assert failure.code == code
