from itertools import count

import pytest

from agentv.model.values.message import Message
from agentv.model.values.response import TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import FunctionRef
from agentv.targets.python import Python
from agentv.targets.python_call import OFFERED
from doubles.asking import answer, answers, request

numbers = count()


@pytest.fixture
def python(tmp_path):
    def made(text, name="f"):
        file = tmp_path / f"target{next(numbers)}.py"
        file.write_text(text)
        return Python(FunctionRef(name, path=str(file)))

    return made


def test_it_may_ask_for_all_that_is_offered(python):
    settings = python(f"def f({', '.join(OFFERED)}): return repr([{', '.join(OFFERED)}])")
    one = request(
        "p",
        "c",
        messages=(Message("system", "s"), Message("user", {"k": [1]})),
        vars={"v": {"w": 1}},
        metadata={"m": [2]},
        workspace_path="/w",
    )
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": {"k": [1]}}]
    shown = answer(settings, one).output
    assert shown == repr(["p", messages, {"v": {"w": 1}}, {"m": [2]}, "c", "/w", {}, {"mcpServers": {}}])


@pytest.mark.parametrize("parameters", ["", "question", "prompt", "*, question", "question, /", "*args, **kwargs"])
@pytest.mark.parametrize("way", ["def", "async def"])
def test_sync_and_async_with_any_parameters(python, parameters, way):
    assert answer(python(f"{way} f({parameters}): return 'yes'")).output == "yes"


@pytest.mark.parametrize(
    ("returned", "response"),
    [
        ("'yes'", TargetResponse("yes")),
        ("None", TargetResponse(None)),
        (
            "{'output': 'yes', 'cost_usd': 1, 'token_usage': {'input': 2}}",
            TargetResponse("yes", (), TokenUsage(2, total=2), 1.0),
        ),
        ("{'text': 'yes'}", TargetResponse("yes")),
        ("TargetResponse('yes', cost_usd=0.5)", TargetResponse("yes", cost_usd=0.5)),
    ],
)
def test_what_it_may_return(python, returned, response):
    settings = python(f"from agentv import TargetResponse\ndef f(prompt): return {returned}")
    found = answers(settings, request(), request())
    assert found[0].duration_ms is not None
    shown = TargetResponse(*(getattr(found[0], name) for name in ("output", "messages", "token_usage", "cost_usd")))
    assert shown == response


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (
            "42",
            "f must return text, a mapping with 'output', a TargetResponse, or what an agent framework returns, not int",
        ),
        ("(part for part in 'yes')", "not generator"),
        ("{'outptu': 'yes'}", "the answer has no 'output' or 'text'; it has 'outptu'"),
        ("TargetResponse(5)", "TargetResponse.output must not be int"),
    ],
)
def test_anything_else_is_a_failure_that_names_it(python, returned, says):
    found = answer(python(f"from agentv import TargetResponse\ndef f(prompt): return {returned}"))
    assert found.code == "bad-answer"
    assert says in found.message


@pytest.mark.parametrize("way", ["def", "async def"])
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("raise ValueError('no')", "f raised ValueError: no (target"),
        ("raise ExceptionGroup('tasks', [ExceptionGroup('task', [ValueError('no')])])", "f raised ValueError: no"),
        ("import sys; sys.exit(2)", "f called sys.exit: SystemExit: 2"),
        ("raise StopIteration", "raised"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_what_it_raises_is_a_failure(python, way, does, says):
    found = answer(python(f"{way} f(prompt):\n    {does}"))
    assert found.code == "target-raised"
    assert says in found.message


def test_it_is_loaded_once_off_the_loop_and_not_timed(python, tmp_path):
    settings = python(
        "import time, threading\ntime.sleep(0.05)\n"
        "with open(__file__ + '.log', 'a') as log: log.write(threading.current_thread().name)\n"
        "def f(prompt): return prompt\n"
    )
    found = answers(settings, *(request(str(number)) for number in range(5)))
    assert [one.output for one in found] == list("01234")
    assert all(one.duration_ms < 40 for one in found)
    [log] = tmp_path.glob("*.log")
    assert log.read_text() == "MainThread"


class TestCallApi:
    """promptfoo's `call_api(prompt, options, context)`."""

    def made(self, python, text, name="call_api", **config):
        return Python(python(text, name).function, config)

    @pytest.mark.parametrize("way", ["def", "async def"])
    def test_it_gets_prompt_options_and_context_by_position(self, python, way):
        text = f"{way} call_api(p, o, c): return {{'output': [p, o['config']['k'], c['vars'], c['test']['metadata']]}}"
        one = request("ask", vars={"x": 1}, metadata={"m": 2})
        assert answer(self.made(python, text, k="v"), one).output == '["ask","v",{"x":1},{"m":2}]'
