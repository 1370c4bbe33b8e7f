"""Templates that exceed the limits on time and memory end with a clear error."""

import gc
import sys
from time import thread_time

import pytest

from agentv.templating import RenderError, Scope, render, rendering

SCOPE = Scope({"name": "Ann", "items": [1, 2, 3], "text": "a b"}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x {{ 9**(9**9) }}", "the result of '**' has too many digits"),
        ("x {{ (9**3000) * (9**3000) * (9**3000) }}", "the result of '*' has too many digits"),
        ("x {{ 'a' * 10**10 }}", "the result of '*' is too long"),
        ("x {{ 'a' * 9000000 + 'a' * 9000000 }}", "the result of '+' is too long"),
        ("x {{ 'a' * 9000000 ~ 'a' * 9000000 }}", "a text of more than 10 MB"),
        ("x {{ 'a'|center(10**8) }}", "a text of more than 10 MB"),
        ("x {{ [['a' * 10**6] * 1000] * 1000 }}", "a value is too large"),
        ("{% set a = 'x' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}", "a text of more than 10 MB"),
        ("{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}", "a value is too large"),
        ("{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a | reverse }}", "a value is too large"),
        ("{% set a = 'x' %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60 + "{{ a }}", "a text of more than 10 MB"),
        ("{% for a in range(99999) %}" + "x" * 9_999 + "{% endfor %}", "a text of more than 10 MB"),
        ("{{ a.b }}" * 3_000, "it has more than 2,000 placeholders"),
    ],
)
def test_a_rendering_that_makes_too_much_of_a_little_is_refused(text: str, message: str) -> None:
    with pytest.raises(RenderError) as raised:
        render(text, SCOPE)
    assert message in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{% for a in [1] recursive %}{% if loop.depth < 60 %}{{ loop([1]) }}{{ loop([1]) }}{% endif %}{% endfor %}",
        "{% set a = 'x' * 9000000 %}{% for i in range(99999) %}{% if a.upper() == 'x' %}{% endif %}{% endfor %}",
    ],
)
def test_a_rendering_that_takes_too_long_ends(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(rendering, "SECONDS", 0.1)
    tracer = sys.gettrace()
    with pytest.raises(RenderError, match=r"cannot render: it takes more than 0\.1 seconds"):
        render(text, SCOPE)
    assert sys.gettrace() is tracer


def test_a_rendering_ends_though_its_time_is_up_at_the_end_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops an error that a trace function raises at a StopIteration, and stops tracing after that."""
    monkeypatch.setattr(rendering, "SECONDS", 0.1)

    def spend(_: int) -> None:
        until = thread_time() + 0.2
        while thread_time() < until:
            pass
        raise StopIteration

    scope = Scope({"slow": map(spend, [0])}, {})
    with pytest.raises(RenderError, match="it takes more than"):
        render("{% for a in slow %}{% endfor %}{% for a in range(9) %}{% endfor %}", scope)


def test_a_rendering_ends_though_its_time_is_up_in_a_finalizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ignores exceptions from a finalizer, and stops tracing after that."""
    monkeypatch.setattr(rendering, "SECONDS", 0.1)
    tracer, until = sys.gettrace(), thread_time() + 0.2

    def spend(_phase: str, _info: dict[str, int]) -> None:
        while sys.gettrace() is not tracer and thread_time() < until:
            pass

    gc.callbacks.append(spend)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        with pytest.raises(RenderError, match="it takes more than"):
            render(
                "{% for a in range(9999) %}{% for b in range(99) %}{% set c = [[b]] %}{% endfor %}{% endfor %}", SCOPE
            )
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(spend)
