import asyncio

import pytest
from msgspec.structs import replace

from agentv.judge.target import CACHED_VERDICTS, SharedCalls, TargetJudge
from agentv.model.run.grade import Check
from agentv.model.run.rubric import Rubric
from agentv.model.values.message import Message, ToolCall
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from doubles.judges import ComputedReplies, FixedReplies, answer_context, fence_token

PROSE = Rubric("freeform", text="is right", temperature=0.3)
STILL = Rubric("freeform", text="is right")
EVA = Rubric("scale", text="is right", scale=(1, 5), pass_threshold=4)
GOOD = '{"score": 0.9, "reason": "right"}'


def assess(target, rubric=PROSE, context=None):
    judge = TargetJudge(target, "strict", timeout_s=7, env={"KEY": "k"})
    return asyncio.run(
        judge.assess(rubric, context or answer_context("42", case_id="add", vars={"a": 1}, metadata={"m": 2}))
    )


def test_the_shape_of_the_verdict_goes_along_with_the_request():
    target = FixedReplies(["?", GOOD])
    assess(target)
    first, second = (request.schema for request in target.requests)
    assert list(first["properties"]) == list(second["properties"]) == ["score", "reason", "assertions", "confirm"]
    eva = FixedReplies(["SCORE=4 REASON=right"])
    assess(eva, EVA)
    assert eva.requests[0].schema is None


@pytest.mark.parametrize("reply", ["It is fine.", "", "SCORE=9 REASON=wow", "SCORE=4 REASON=a\nSCORE=5 REASON=b"])
def test_a_reply_off_the_scale_fails_the_answer_and_is_not_asked_again(reply):
    target = FixedReplies([TargetResponse(reply, token_usage=TokenUsage(10), cost_usd=0.5)])
    verdict = assess(target, EVA)
    assert (verdict.score, verdict.passed, verdict.undecided) == (0, False, True)
    assert (verdict.token_usage, verdict.cost_usd) == (TokenUsage(10), 0.5)
    assert verdict.reason.startswith("the judge's reply is not a verdict: ")
    (check,) = verdict.checks
    assert (check.passed, check.evidence, verdict.reply) == (False, reply or None, reply)
    assert check.text == verdict.reason
    assert len(target.requests) == 1


def test_a_judge_that_cannot_be_reached_errs_on_a_scale_too():
    assert assess(FixedReplies([Failure("timeout", "7 s")]), EVA).code == "judge-timeout"


# votes


def test_votes_are_questions_of_their_own_and_the_median_counts():
    target = FixedReplies(['{"score": 0.2}', '{"score": 0.9, "reason": "nearly"}', '{"score": 1}'])
    verdict = assess(target, replace(STILL, votes=3))
    assert (verdict.score, verdict.reason, verdict.votes) == (0.9, "nearly", (0.2, 0.9, 1.0))
    assert [request.sample for request in target.requests] == [1, 2, 3]
    assert len({fence_token(request) for request in target.requests}) == 3


def test_a_vote_that_cannot_be_read_errs_the_grade_and_is_paid_for():
    def reply(request):
        return "?" if request.sample == 2 else GOOD

    failure = assess(ComputedReplies(reply), replace(STILL, votes=3))
    assert (failure.code, failure.reply) == ("unreadable-verdict", "?")
    assert failure.message.startswith("vote 2 of 3: judge 'strict' gave no readable verdict")


# identical questions


def asked_twice(rubric, *contexts, reply=GOOD):
    target = FixedReplies([TargetResponse(reply, token_usage=TokenUsage(10), cost_usd=0.5)])
    judge = TargetJudge(target, "strict")

    async def run():
        one_after_the_other = [await judge.assess(rubric, context) for context in contexts]
        return [*one_after_the_other, *await asyncio.gather(*(judge.assess(rubric, one) for one in contexts))]

    return asyncio.run(run()), target.requests


@pytest.mark.parametrize("rubric", [STILL, EVA])
def test_the_same_question_is_put_once(rubric):
    reply = "SCORE=4 REASON=right" if rubric is EVA else GOOD
    verdicts, requests = asked_twice(rubric, answer_context("42"), answer_context("42"), reply=reply)
    assert len(requests) == 1
    assert [verdict.shared for verdict in verdicts] == [False, True, True, True]
    assert [verdict.cost_usd for verdict in verdicts] == [0.5, 0, 0, 0]
    assert [verdict.token_usage for verdict in verdicts] == [TokenUsage(10), None, None, None]
    assert len({verdict.score for verdict in verdicts}) == 1


async def test_a_price_that_is_not_known_is_not_0_the_second_time():
    judge = TargetJudge(FixedReplies([GOOD]), "strict")

    assert [
        (verdict.cost_usd, verdict.shared)
        for verdict in [await judge.assess(STILL, answer_context("42")) for _ in range(2)]
    ] == [(None, False), (None, True)]


def test_with_a_temperature_every_question_is_put():
    _, requests = asked_twice(PROSE, answer_context("42"), answer_context("42"))
    assert len(requests) == 4


def test_votes_are_shared_by_their_number():
    verdicts, requests = asked_twice(replace(STILL, votes=3), answer_context("42"))
    assert len(requests) == 3
    assert [(verdict.cost_usd, verdict.shared) for verdict in verdicts] == [(1.5, False), (0, True)]


@pytest.mark.parametrize(
    "other",
    [
        answer_context("43"),
        answer_context("42", "What is 16 + 26?"),
        answer_context("42", case_id="other"),
        answer_context("42", vars={"a": 1}),
        answer_context("42", metadata={"a": 1}),
        answer_context("42", expected_output=(Message("assistant", "42"),)),
        answer_context("42", messages=(Message("assistant", "", tool_calls=(ToolCall("add", {}),)),)),
        answer_context("x" * 60 + "y" + "x" * 60),
    ],
)
def test_another_context_is_another_question(other):
    first = answer_context("x" * 121) if other.output.startswith("x") else answer_context("42")
    _, requests = asked_twice(replace(STILL, max_chars=100), first, other)
    assert len(requests) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"text": "is wrong"},
        {"prompt": "Judge {{ output }}"},
        {"mode": "scale", "scale": (1, 5), "pass_threshold": 4},
        {"max_chars": 50},
    ],
)
async def test_another_rubric_is_another_question(change):
    target = FixedReplies([GOOD])
    judge = TargetJudge(target, "strict")

    await judge.assess(STILL, answer_context("42"))
    assert not (await judge.assess(replace(STILL, **change), answer_context("42"))).shared
    assert len(target.requests) == 2


async def test_no_verdict_is_not_remembered():
    target = FixedReplies([Failure("timeout", "7 s"), GOOD])
    judge = TargetJudge(target, "strict")

    failure, verdict, again = [await judge.assess(STILL, answer_context("42")) for _ in range(3)]
    assert (failure.code, verdict.shared, again.shared) == ("judge-timeout", False, True)
    assert len(target.requests) == 2


async def test_no_more_verdicts_are_remembered_than_may_be():
    judge = TargetJudge(FixedReplies([GOOD]), "strict")

    for number in range(CACHED_VERDICTS + 1):
        await judge.assess(STILL, answer_context(f"{number}"))
    assert [(await judge.assess(STILL, answer_context(f"{number}"))).shared for number in (CACHED_VERDICTS, 0)] == [
        True,
        False,
    ]


def test_what_the_target_is_asked():
    target = FixedReplies([GOOD])
    assess(target)
    (request,) = target.requests
    assert (request.case_id, request.attempt, request.timeout_s, request.temperature) == ("add", 1, 7, 0.3)
    assert (request.vars, request.metadata, request.env) == ({"a": 1}, {"m": 2}, {"KEY": "k"})
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.prompt.startswith("system:\n")
    assert "<answer-" in request.prompt


def test_an_unreadable_reply_is_asked_for_once_more():
    target = FixedReplies(["It is fine.", GOOD])
    assert assess(target).score == 0.9
    second = target.requests[1]
    assert second.attempt == 2
    assert [message.role for message in second.messages] == ["system", "user", "assistant", "user"]
    assert "it contains no JSON object with the key 'score'" in second.messages[3].text


@pytest.mark.parametrize("reply", ["It is fine.", "", '{"score": 2}', '{"score": NaN}', '{"score": 1} {"score": 0}'])
def test_a_judge_that_cannot_be_read_twice_gives_no_verdict(reply):
    target = FixedReplies([reply])
    failure = assess(target)
    assert failure.code == "unreadable-verdict"
    assert failure.reply == reply
    assert reply[:20] in failure.message
    assert "judge 'strict'" in failure.message
    assert len(target.requests) == 2


def test_an_answer_of_nothing_is_no_verdict():
    failure = assess(FixedReplies([TargetResponse(None)]))
    assert (failure.code, failure.reply) == ("unreadable-verdict", "")


@pytest.mark.parametrize(("code", "shown"), [("timeout", "judge-timeout"), ("judge-busy", "judge-busy")])
def test_a_failure_of_the_target_is_passed_on(code, shown):
    target = FixedReplies([Failure(code, "took 7 s", retryable=True)])
    failure = assess(target)
    assert (failure.code, failure.message, failure.retryable) == (shown, "judge 'strict' failed: took 7 s", True)
    assert len(target.requests) == 1


def test_what_all_calls_took_is_added_up():
    first = TargetResponse("?", token_usage=TokenUsage(10, 5, 15), cost_usd=0.25)
    verdict = assess(FixedReplies([first, TargetResponse(GOOD, token_usage=TokenUsage(30, 1, 31), cost_usd=0.5)]))
    assert (verdict.token_usage, verdict.cost_usd) == (TokenUsage(40, 6, 46), 0.75)
    unknown = assess(FixedReplies([first, GOOD]))
    assert (unknown.token_usage, unknown.cost_usd) == (TokenUsage(10, 5, 15), 0.25)
    failed = assess(FixedReplies([first, Failure("timeout", "took 7 s")]))
    assert (failed.token_usage, failed.cost_usd, failed.reply) == (TokenUsage(10, 5, 15), 0.25, "?")
    unreadable = assess(FixedReplies([first]))
    assert (unreadable.token_usage, unreadable.cost_usd) == (TokenUsage(20, 10, 30), 0.5)
    free = assess(FixedReplies([GOOD]))
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
    target = FixedReplies([GOOD])
    failure = assess(target, Rubric("freeform", prompt=prompt, prompt_path="/evals/judge.md"))
    assert failure.code == code
    assert failure.message.startswith("the judge prompt /evals/judge.md: ")
    assert not target.requests


def test_prompts_written_for_agentv_work():
    prompt = "Q: {{question}}\nA: {{candidate_answer}}\nRef: {{reference_answer}}\nReply as JSON."
    reply = '{"score": 0.5, "hits": ["adds"], "misses": ["no words"], "reasoning": "half"}'
    verdict = assess(FixedReplies([reply]), Rubric("freeform", prompt=prompt))
    assert (verdict.score, verdict.reason) == (0.5, "half")
    assert verdict.checks == (Check("adds", True), Check("no words", False))


async def test_a_cancelled_call_is_cancelled():
    class Hanging(FixedReplies):
        async def answer(self, request):
            self.requests.append(request)
            await asyncio.Event().wait()

    judge = TargetJudge(target := Hanging([]), "strict")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await judge.assess(PROSE, answer_context("42"))
    assert len(target.requests) == 1


def test_a_bare_question_gets_the_judges_words():
    target = FixedReplies(["YES"])
    assert asyncio.run(TargetJudge(target, "strict", timeout_s=7).ask("Would you?")).output == "YES"
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
    assert asyncio.run(TargetJudge(FixedReplies([reply]), "strict").ask("Would you?")).code == code


class Calls:
    """Calls that end when the test ends them."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.made = 0
        self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self):
        self.made += 1
        outcome = self.outcomes[min(self.made, len(self.outcomes)) - 1]
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            for _ in range(5):  # time for cleaning up
                await asyncio.sleep(0)
            self.cancelled += 1
            raise
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def sharing(most=10):
    return SharedCalls(lambda outcome: outcome != "failed", most)


async def soon(*coroutines):
    tasks = [asyncio.create_task(one) for one in coroutines]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_those_who_ask_meanwhile_wait_for_the_first():
    calls, shared = Calls("yes"), sharing()
    tasks = await soon(*(shared.once(b"k", calls) for _ in range(3)))
    calls.go.set()
    assert (await asyncio.gather(*tasks), calls.made) == ([("yes", False), ("yes", True), ("yes", True)], 1)


async def test_what_failed_is_asked_again_but_for_those_who_waited():
    calls, shared = Calls("failed", "yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    calls.go.set()
    assert ([*await asyncio.gather(*tasks), await shared.once(b"k", calls)], calls.made) == (
        [("failed", False), ("failed", True), ("yes", False)],
        2,
    )


async def test_one_who_leaves_does_not_take_the_call_along():
    calls, shared = Calls("yes"), sharing()
    first, second = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    first.cancel()
    await asyncio.wait({first})
    calls.go.set()
    assert (first.cancelled(), await second, calls.made, calls.cancelled) == (True, ("yes", True), 1, 0)


async def test_the_last_who_leaves_ends_the_call_and_sees_it_ended():
    calls, shared = Calls("yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    ended = calls.cancelled
    calls.go.set()
    assert (ended, await shared.once(b"k", calls), calls.made) == (1, ("yes", False), 2)


async def test_one_who_comes_while_a_call_is_being_ended_makes_its_own():
    calls, shared = Calls("yes"), sharing()
    (first,) = await soon(shared.once(b"k", calls))
    first.cancel()
    await asyncio.sleep(0)
    calls.go.set()
    assert (await shared.once(b"k", calls), calls.made) == (("yes", False), 2)


async def test_a_call_that_raises_raises_for_all_and_is_forgotten():
    calls, shared = Calls(ValueError("broken"), "yes"), sharing()
    tasks = await soon(shared.once(b"k", calls), shared.once(b"k", calls))
    calls.go.set()
    for task in tasks:
        with pytest.raises(ValueError, match="broken"):
            await task
    assert (await shared.once(b"k", calls), shared._running) == (("yes", False), {})
