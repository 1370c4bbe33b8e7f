from __future__ import annotations

import asyncio
from itertools import count

import pytest

from agentv.model.values.message import Message
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.usage import TokenUsage
from agentv.registry.fields import FunctionRef
from agentv.targets.python import GivenFunction, Python
from agentv.targets.python_call import OFFERED
from doubles.asking import answer, answers, code, request, spec_of

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
    assert answer(settings, one).output == repr(["p", messages, {"v": {"w": 1}}, {"m": [2]}, "c", "/w", {}])


@pytest.mark.parametrize("parameters", ["", "question", "prompt", "*, question", "question, /", "*args, **kwargs"])
@pytest.mark.parametrize("way", ["def", "async def"])
def test_sync_and_async_with_any_parameters(python, parameters, way):
    assert answer(python(f"{way} f({parameters}): return 'yes'")).output == "yes"


def test_a_sync_function_may_return_something_to_await(python):
    assert answer(python("async def g(p): return p\ndef f(prompt): return g(prompt)")).output == "hello"


def test_an_object_that_can_be_called(python):
    text = (
        "class A:\n    async def __call__(self, prompt): return prompt\n    def ask(self, q): return q + '!'\nf = A()\n"
    )
    assert answer(python(text)).output == "hello"
    assert answer(python(text, "f.ask")).output == "hello!"


def test_what_it_does_to_its_arguments_nobody_sees(python):
    settings = python(
        "def f(vars, metadata, messages):\n    vars['a'].append(1); metadata.clear(); messages[0]['content']['x'] = 1"
    )
    one = request(vars={"a": []}, metadata={"m": 1}, messages=(Message("user", {}),))
    assert [found.output for found in answers(settings, one, one)] == [None, None]
    assert (one.vars, one.metadata, one.messages[0].content) == ({"a": []}, {"m": 1}, {})


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
    assert (
        TargetResponse(*(getattr(found[0], name) for name in ("output", "messages", "token_usage", "cost_usd")))
        == response
    )


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        (
            "42",
            "f must return text, a mapping with 'output', a TargetResponse, or what an agent framework returns, not int",
        ),
        ("b'yes'", "not bytes"),
        ("['yes']", "not list"),
        ("(part for part in 'yes')", "not generator"),
        ("{'outptu': 'yes'}", "the answer has no 'output' or 'text'; it has 'outptu'"),
        ("TargetResponse(5)", "TargetResponse.output must not be int"),
    ],
)
def test_anything_else_is_a_failure_that_names_it(python, returned, says):
    found = answer(python(f"from agentv import TargetResponse\ndef f(prompt): return {returned}"))
    assert isinstance(found, Failure)
    assert found.code == "bad-answer"
    assert says in found.message


@pytest.mark.parametrize("way", ["def", "async def"])
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("raise ValueError('no')", "f raised ValueError: no (target"),
        ("import sys; sys.exit(2)", "f called sys.exit: SystemExit: 2"),
        ("raise StopIteration", "raised"),
        ("import asyncio; raise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_what_it_raises_is_a_failure(python, way, does, says):
    found = answer(python(f"{way} f(prompt):\n    {does}"))
    assert isinstance(found, Failure)
    assert found.code == "target-raised"
    assert says in found.message


def test_what_cannot_be_loaded_or_called_is_a_failure_of_every_call(python):
    assert code(python("def g(): pass")) == "cannot-load"
    assert code(python("def f(one, two): pass")) == "bad-signature"
    found = answers(python("1 / 0"), request(), request(), request())
    assert [one.code for one in found] == ["cannot-load"] * 3
    assert code(Python(FunctionRef("x", module="no_such_module"))) == "cannot-load"


def test_a_module_is_found_by_its_name():
    assert answer(Python(FunctionRef("dedent", module="textwrap")), request("  x")).output == "x"


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


def test_a_call_cancelled_while_it_is_loaded_does_not_spoil_the_others(python):
    settings = python("import time\ntime.sleep(0.05)\ndef f(prompt): return prompt\n")

    async def ask():
        from agentv.user_code.functions.threads import DaemonThreads

        executor = DaemonThreads()
        target = settings.connect(spec_of(settings), executor)
        calls = [asyncio.ensure_future(target.answer(request(str(number)))) for number in range(3)]
        await asyncio.sleep(0.01)
        calls[0].cancel()
        try:
            return await asyncio.gather(*calls, return_exceptions=True)
        finally:
            await executor.aclose()

    first, *others = asyncio.run(ask())
    assert isinstance(first, asyncio.CancelledError)
    assert [one.output for one in others] == ["1", "2"]


def test_sync_functions_run_side_by_side(python):
    meeting = "import threading\nall_of_them = threading.Barrier(20)\n"
    found = answers(python(f"{meeting}def f(prompt): all_of_them.wait(30); return prompt"), *[request()] * 20)
    assert [one.output for one in found] == [found[0].output] * 20


def test_a_function_at_hand_is_called_as_one_in_a_file():
    async def doubled(question):
        return question * 2

    assert answer(GivenFunction(doubled)).output == "hellohello"
    assert answer(GivenFunction(str.upper)).output == "HELLO"
    assert answer(GivenFunction(lambda prompt: 1 / 0)).message.startswith("target raised ZeroDivisionError")
    assert code(GivenFunction(lambda one, two: None)) == "bad-signature"


class TestCallApi:
    """promptfoo's `call_api(prompt, options, context)`."""

    def made(self, python, text, name="call_api", **config):
        settings = python(text, name)
        return Python(settings.function, config)

    @pytest.mark.parametrize("way", ["def", "async def"])
    def test_it_gets_prompt_options_and_context_by_position(self, python, way):
        text = f"{way} call_api(p, o, c): return {{'output': [p, o['config']['k'], c['vars'], c['test']['metadata']]}}"
        one = request("ask", vars={"x": 1}, metadata={"m": 2})
        found = answer(self.made(python, text, k="v"), one)
        assert found.output == '["ask","v",{"x":1},{"m":2}]'

    @pytest.mark.parametrize("parameters", ["prompt", "prompt, options", "prompt, options, context=None", "*all"])
    def test_it_may_take_fewer(self, python, parameters):
        assert answer(self.made(python, f"def call_api({parameters}): return {{'output': 'a'}}")).output == "a"

    def test_a_function_of_another_name_is_one_by_its_parameters(self, python):
        text = "def ask(question, options, context): return {'output': options['config']['k'], 'cost': 0.5}"
        found = answer(self.made(python, text, "ask", k="v"))
        assert (found.output, found.cost_usd) == ("v", 0.5)

    def test_config_reaches_any_function(self, python):
        assert answer(self.made(python, "def f(prompt, config): return config['k']", "f", k="v")).output == "v"

    def test_what_it_does_to_its_config_nobody_sees(self, python):
        text = "def call_api(p, o, c): o['config']['n'].append(1); return str(len(o['config']['n']))"
        found = answers(self.made(python, text, n=[]), request(), request())
        assert [one.output for one in found] == ["1", "1"]

    def test_several_messages_are_json(self, python):
        text = "import json\ndef call_api(p, o, c): return json.loads(p)[0]['role']"
        messages = (Message("system", "s"), Message("user", "u"))
        assert answer(self.made(python, text), request(messages=messages)).output == "system"

    @pytest.mark.parametrize("value", ["None", "{}", "{'output': None}"])
    def test_nothing_is_an_empty_answer(self, python, value):
        assert answer(self.made(python, f"def call_api(p, o, c): return {value}")).output is None

    def test_an_error_is_a_failure(self, python):
        text = "def call_api(p, o, c): return {'output': '', 'error': 'quota'}"
        assert code(self.made(python, text)) == "target-error"
