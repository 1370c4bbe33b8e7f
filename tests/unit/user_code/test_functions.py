import functools

import pytest

from agentv.user_code.functions import arguments_for, plan_call
from agentv.user_code.guard import ForeignError

OFFERED = {"prompt": "the prompt", "messages": ["the messages"], "vars": {"a": 1}}


def called(function):
    plan = plan_call(function, OFFERED, "prompt")
    assert plan.used <= set(OFFERED)
    return plan.bind(function, {name: OFFERED[name] for name in plan.used})()


def seen(*args, **kwargs):
    return args, kwargs


class Agent:
    def __call__(self, prompt):
        return ("called", prompt)

    def method(self, question):
        return question

    @classmethod
    def made(cls, prompt, client=None):
        return (prompt, client)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (lambda: "nothing", "nothing"),
        (lambda prompt: prompt, "the prompt"),
        (lambda vars, prompt: (vars, prompt), ({"a": 1}, "the prompt")),  # noqa: A006
        (lambda messages: messages, ["the messages"]),
        (lambda question: question, "the prompt"),
        (lambda question, /: question, "the prompt"),
        (lambda *, question: question, "the prompt"),
        (lambda prompt, /, vars: (prompt, vars), ("the prompt", {"a": 1})),  # noqa: A006
        (lambda question, vars=None: (question, vars), ("the prompt", {"a": 1})),  # noqa: A006
        (lambda prompt, model="small": (prompt, model), ("the prompt", "small")),
        (lambda model="small", *, messages: (model, messages), ("small", ["the messages"])),
        (lambda prompt, client=None, /, vars=None: (prompt, client, vars), ("the prompt", None, {"a": 1})),  # noqa: A006
        (lambda *args: args, ("the prompt",)),
        (seen, ((), OFFERED)),
        (lambda question, **others: (question, others), ("the prompt", OFFERED)),
        (
            lambda prompt, /, **others: (prompt, others),
            ("the prompt", {k: v for k, v in OFFERED.items() if k != "prompt"}),
        ),
        (Agent(), ("called", "the prompt")),
        (Agent.made, ("the prompt", None)),
        (decorated(lambda question: question), "the prompt"),
        (functools.partial(lambda client, question: (client, question), "a client"), ("a client", "the prompt")),
    ],
)
def test_a_function_gets_what_it_asks_for(function, result):
    assert called(function) == result


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda one, two: None, "<lambda> has the parameters one, two; available: prompt, messages, vars"),
        (lambda client, prompt: None, "has the parameters client;"),
        (lambda client, vars: None, "has the parameters client;"),  # noqa: A006
        (Agent.method, "method has the parameters self, question;"),
        (max, "cannot inspect the parameters of"),
    ],
)
def test_what_cannot_be_given_is_said(function, says):
    with pytest.raises(ForeignError) as caught:
        plan_call(function, OFFERED, "prompt")
    assert caught.value.failure.code == "bad-signature"
    assert says in caught.value.failure.message


def test_arguments_by_keyword_alone():
    assert arguments_for(lambda question, vars=None: None, OFFERED, "prompt") == {  # noqa: A006
        "question": "the prompt",
        "vars": {"a": 1},
    }
    with pytest.raises(ForeignError, match="has positional-only parameters"):
        arguments_for(lambda prompt, /: None, OFFERED, "prompt")
