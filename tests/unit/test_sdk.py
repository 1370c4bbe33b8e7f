import asyncio
import subprocess
import sys
import threading

import pytest

import agentv
from agentv import (
    Case,
    ExitStatus,
    LoadError,
    RetrievedText,
    Suite,
    TargetResponse,
    Turn,
    UsageError,
    evaluate,
    evaluate_async,
)

PUBLIC = [
    "AgentvError", "AssertionContext", "AssertionScore", "Case", "Check", "Diagnostic", "Evaluation", "ExitStatus",
    "Grade", "LoadError", "Message", "RetrievedText", "StoreError", "Suite", "Summary", "TargetResponse",
    "TokenUsage", "TrialResult", "Turn", "UsageError", "__version__", "define_assertion", "define_script_grader",
    "evaluate", "evaluate_async",
]  # fmt: skip


pytestmark = pytest.mark.usefixtures("project")


def one(identity: str = "a", **given) -> dict:
    return {"id": identity, "input": "hello", "assert": [{"contains": "hello"}], **given}


def test_the_public_names_are_these():
    assert sorted(agentv.__all__) == sorted(PUBLIC)
    assert all(getattr(agentv, name) is not None for name in PUBLIC)
    assert set(PUBLIC) <= set(dir(agentv))
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        agentv.evaluat  # noqa: B018


def test_importing_agentv_costs_nothing():
    heavy = ["asyncio", "click", "jinja2", "msgspec", "yaml", "rich", "numpy", "scipy", "regex", "aiohttp", "pydantic"]
    code = f"import sys, agentv; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_types_are_shipped():
    from importlib.resources import files

    assert files("agentv").joinpath("py.typed").is_file()


def test_a_function_returns_what_it_retrieved():
    def answer(prompt: str) -> object:
        if prompt == "hello":
            return {"output": prompt, "context": ["a", {"text": "b", "id": 1}], "contexts": 1, "metadata": {"n": 1}}
        if prompt == "hello call":
            return {"output": prompt, "tool_calls": []}
        return TargetResponse(prompt, context=(RetrievedText("c"),))

    cases = [one(**{"assert": [{"python": "[item.text for item in context.context] == ['a', 'b']"}]})]
    cases += [one("b", input="hello again"), one("c", input="hello call")]
    done = evaluate({"tests": cases}, target=answer)
    first, second, third = sorted(done.results, key=lambda result: result.trial.case.id)
    assert done.status is ExitStatus.PASSED
    assert first.context == (RetrievedText("a"), RetrievedText("b", "1"))
    assert first.response_metadata == {"n": 1}
    assert first.notes == ("the target's mapping has keys that are ignored: 'contexts'; did you mean 'context'?",)
    assert (second.context, second.notes) == ((RetrievedText("c"),), ())
    assert third.notes[0].endswith("'tool_calls'; tool calls belong in the messages of 'output'")


def test_a_suite_built_in_python_and_an_async_target():
    async def answer(prompt: str, vars: dict) -> str:  # noqa: A002  # the name in SPEC section 12
        await asyncio.sleep(0)
        return f"{prompt} {vars['name']}"

    suite = Suite(
        name="greeting",
        assertions=[{"not-contains": "bye"}],
        tests=[
            Case(id="good", input="hi {{ name }}", vars={"name": "Ann"}, assertions=[{"equals": "hi Ann Ann"}]),
            Case(id="bad", input="hi", vars={"name": "Ann"}, assertions=[{"type": "contains", "value": "Bob"}]),
        ],
    )
    done = evaluate(suite, target=answer)
    assert done.status is ExitStatus.FAILED
    assert {one.trial.case.id: one.status for one in done.results} == {"good": "passed", "bad": "failed"}
    assert [score.grade.passed for score in done.results[0].scores] in ([True, True], [False, True])


async def test_inside_a_running_loop():
    done = await evaluate_async({"target": "echo", "tests": [one()]}, workers=2, out="here")
    assert done.passed
    assert done.directory.name == "here"


@pytest.mark.filterwarnings("error")
async def test_the_blocking_one_works_inside_a_running_loop_too():
    from contextvars import ContextVar

    session = ContextVar("session", default="none")
    threads = set()

    async def coroutine(prompt: str) -> str:
        return session.get()

    def plain(prompt: str) -> str:
        threads.add(threading.current_thread())
        return session.get()

    case = {"id": "a", "input": "x", "assert": [{"equals": "mine"}]}

    session.set("mine")
    with pytest.raises(LoadError):
        evaluate({"tests": [{"id": "a"}]})
    done = [evaluate({"tests": [case]}, target=target, out=target.__name__) for target in (plain, coroutine)]
    assert [one.passed for one in done] == [True, True]
    assert threading.main_thread() not in threads
    assert session.get() == "mine"


def test_a_path_and_options(tmp_path):
    (tmp_path / "a.eval.yaml").write_text(
        "target: echo\ntests:\n"
        "  - {id: a, input: hello, assert: [contains: hello]}\n  - {id: b, input: hello, assert: [contains: bye]}\n"
    )
    assert evaluate(tmp_path / "a.eval.yaml").status is ExitStatus.FAILED
    assert evaluate("a.eval.yaml", filter="a").passed
    assert evaluate([tmp_path / "a.eval.yaml"], limit=1, repeat=3).summary.trials.passed == 3


def test_what_is_wrong_is_raised_with_every_diagnostic():
    with pytest.raises(LoadError) as caught:
        evaluate({"target": "echo", "tests": [one(asert=[]), {"id": "b", "input": "x", "assert": [{"contians": "x"}]}]})
    assert {found.code for found in caught.value.diagnostics} == {"unknown-key", "unknown-assertion"}
    assert "did you mean 'contains'" in str(caught.value)


def test_a_target_that_raises_is_errored_and_not_raised():
    def broken(prompt: str) -> str:
        raise ValueError("no")

    done = evaluate({"tests": [one()]}, target=broken)
    assert done.status is ExitStatus.ERRORED
    assert done.results[0].error.code == "target-raised"
    assert done.summary.pass_rate is None


async def test_a_function_handed_to_evaluate_async_runs_on_the_callers_loop():
    here, gate = asyncio.get_running_loop(), asyncio.Event()
    homes = []

    async def answer(prompt: str) -> str:
        homes.append(asyncio.get_running_loop())
        here.call_later(0.01, gate.set)
        await gate.wait()
        return prompt

    async def judge(prompt: str) -> str:
        homes.append(asyncio.get_running_loop())
        return '{"score": 1, "reason": "polite"}'

    suite = {"tests": [{"id": "a", "input": "hello", "criteria": "is polite"}]}
    done = await evaluate_async(suite, target=answer, judge=judge)
    assert (done.passed, set(homes) == {here}) == (True, True)


def test_a_threshold_of_zero_for_a_run_is_warned_of_unless_a_gate_judges():
    gated = {**one(), "assert": [{"contains": "hello", "required": True}]}
    codes = [
        [found.code for found in evaluate({"target": "echo", "tests": [case]}, threshold=0).diagnostics]
        for case in (one(), gated)
    ]
    assert codes == [["zero-threshold"], []]
    with pytest.raises(LoadError):
        evaluate({"target": "echo", "tests": [one()]}, threshold=0, strict=True)


def test_every_suite_has_an_environment_of_its_own_for_judges_and_javascript():
    from agentv.app.wiring import Connections
    from agentv.model.suite.suite import Suite as LoadedSuite

    suites = [LoadedSuite(name, (), env={"A": value}) for name, value in (("a", "1"), ("b", "2"), ("c", "1"))]
    connections = Connections()
    first, second, third = (connections.javascript(suite) for suite in suites)
    assert (first.env, second.env) == ({"A": "1"}, {"A": "2"})
    assert first is third


def test_a_case_with_turns_and_one_that_depends_on_it():
    asked = []

    def answer(messages: list, case_id: str) -> str:
        asked.append((case_id, [message["content"] for message in messages]))
        return f"answer {len(messages)}"

    suite = Suite(
        name="talk",
        assertions=[{"contains": "answer"}],
        tests=[
            Case(id="later", input="hi", depends_on="talk"),
            Case(
                id="talk",
                turns=[
                    Turn(input="one", assertions=[{"contains": "1"}]),
                    Turn(input="two", assertions=[{"contains": "3"}], expected_output="answer 3"),
                    {"input": "three"},
                ],
            ),
            Case(id="a", input="first", conversation_id="x"),
            Case(id="b", input="second", conversation_id="x", depends_on=["talk", "later"]),
        ],
    )
    done = evaluate(suite, target=answer, workers=1)
    assert done.passed, done.results
    assert [case for case, _ in asked if case != "a"] == ["talk", "talk", "talk", "later", "b"]
    assert dict(asked)["talk"] == ["one", "answer 1", "two", "answer 3", "three"]
    assert dict(asked)["b"] == ["first", "answer 1", "second"]
    (talk,) = [result for result in done.results if result.trial.case.id == "talk"]
    assert [turn.output for turn in talk.turns] == ["answer 1", "answer 3", "answer 5"]


def test_flags_that_select_cases_are_keywords():
    prompts = [{"id": "brief", "prompt": "{{ q }}"}, {"id": "long", "prompt": "Please, {{ q }}"}]
    tests = [Case(id=f"c{at}", vars={"q": "x"}, assertions=[{"contains": "x"}]) for at in range(5)]
    suite = Suite(name="s", tests=tests, prompts=prompts, target="echo")
    found = evaluate(suite, prompts="brief", shuffle=True, seed=2, shard="1/2", filter=["c*"])
    ran = sorted((one.trial.case.id, one.trial.case.prompt_id) for one in found.results)
    assert (ran, found.passed) == ([("c0", "brief"), ("c2", "brief"), ("c4", "brief")], True)
    with pytest.raises(UsageError, match="filter has no pattern"):
        evaluate(suite, filter=[])
    empty = evaluate(suite, shard="6/6")
    assert (empty.results, empty.status) == ((), ExitStatus.PASSED)


def test_arguments_of_which_no_run_can_be_made_are_refused_in_a_sentence():
    suite = {"target": "echo", "tests": [{"id": "a", "input": "hello"}]}
    mistakes = [
        ({"target": [str, "echo"]}, "target must be a name, a function or a mapping, found a value of type list"),
        ({"targets": ["echo"]}, "targets is no option of evaluate()"),
        ({"target": "echo", "targets": ["echo"]}, "targets is no option of evaluate()"),
        ({"judge": 3}, "judge must be a name, a function or a mapping, found a value of type int"),
        ({"worker": 3}, "evaluate() has no option 'worker'"),
    ]
    hints = []
    for arguments, message in mistakes:
        with pytest.raises(UsageError) as refused:
            evaluate(suite, **arguments)
        assert str(refused.value).startswith(message)
        hints.append(refused.value.hint)
    assert hints[0] == hints[1] == "target is one target; to evaluate several, set 'targets' in the suite"
    assert hints[3:] == [None, "did you mean 'workers'?"]
