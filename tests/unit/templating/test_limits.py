"""Templates that ask for more time and memory than there is end with an error that says so."""

from __future__ import annotations

import pytest

from agentv.templating import RenderError, Scope, limits, render

SCOPE = Scope({"name": "Ann", "items": [1, 2, 3], "text": "a b"}, {})


@pytest.mark.parametrize(
    "expression",
    [
        "'a'|center(10**10)",
        "'a'|center(10000000000)",
        "'a'.ljust(10**10)",
        "'1'.zfill(10**10)",
        "'%10000000000d'|format(1)",
        "'%10000000000d' % 1",
        "'{:>10000000000}'.format(1)",
        "'{:>{w}}'.format(1, w=10**10)",
        "('a' * 10**6)|replace('a', 'b' * 10**6)",
        "('a' * 10**6).translate({97: 'b' * 10**6})",
        "'a'|indent(10**10)",
        "[1]|batch(10**9, 0)|list",
        "[1]|slice(10**9)|list",
        "range(100000)|join('a' * 10**6)",
        "5|round(-10**9)",
        "(1).to_bytes(10**10, 'big')",
        "lipsum(10**8)",
        "([['a' * 10**6] * 1000] * 1000)|string",
        "'a' * 9000000 ~ 'a' * 9000000",
    ],
)
def test_an_expression_that_makes_too_much_of_a_little_is_refused(expression: str) -> None:
    with pytest.raises(RenderError, match=r"cannot render|not a valid template"):
        render(f"x {{{{ {expression} }}}}", SCOPE)


@pytest.mark.parametrize(
    "text",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(99999) %}" + "x" * 9_999 + "{% endfor %}",
        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
        "{% for a in [1] recursive %}{% if loop.depth < 60 %}{{ loop([1]) }}{{ loop([1]) }}{% endif %}{% endfor %}",
        "{% set a = 'x' %}" + "{% set a = a ~ a %}" * 60 + "{{ a }}",
        "{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a }}",
        "{% set a = 'x' %}" + "{% set a %}{{ a }}{{ a }}{% endset %}" * 60 + "{{ a }}",
        "{{ a.b }}" * 3_000,
    ],
)
def test_a_template_that_takes_too_long_is_refused(text: str) -> None:
    with pytest.raises(RenderError, match=r"cannot render|not a valid template"):
        render(text, SCOPE)


def test_only_computing_counts_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "{% for i in range(20000) %}{{ i }}{% endfor %}"
    shown = render(text, SCOPE)
    monkeypatch.setattr(limits, "SECONDS", 1e-6)
    with pytest.raises(RenderError, match="cannot render: it takes more than 1e-06 seconds"):
        render(text, SCOPE)
    monkeypatch.setattr(limits, "thread_time", lambda: 0.0)
    assert render(text, SCOPE) == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{% for i in items %}{{ loop.index }}/{{ loop.length }}={{ i }}{% if not loop.last %}, {% endif %}{% endfor %}",
            "1/3=1, 2/3=2, 3/3=3",
        ),
        ("{{ name|center(7) }}|{{ 'a'.ljust(3) }}|", "  Ann  |a  |"),
        ("{{ name ~ ' ' ~ 1 }} {{ '%05.1f'|format(2.5) }} {{ '{:>4}'.format(7) }}", "Ann 1 002.5    7"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(1) }}{{ m(name) }}", "<1><Ann>"),
        (
            "x {{ items|join('-') }} {{ items|sum }} {{ [name, 1] }} {{ {'a': name} }}",
            'x 1-2-3 6 ["Ann", 1] {"a": "Ann"}',
        ),
        (
            "x {{ text|replace('a', 'b')|upper|indent(2, true) }} {{ 2.345|round(1) }} {{ 1 < 2 < 3 }}",
            "x   B B 2.3 true",
        ),
    ],
)
def test_what_people_write_is_as_it_was(text: str, expected: str) -> None:
    assert render(text, SCOPE) == expected
