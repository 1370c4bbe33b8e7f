from __future__ import annotations

import pytest

from agentv.templating import Language, RenderError, Scope, render

PROMPTFOO = Language(nunjucks=True, missing_empty=True)
VARS = {
    "object": {"a": 1, "items": "own"},
    "list": ["a", "b"],
    "empty": [],
    "text": "ab",
    "one": 1,
    "float": 2.0,
    "yes": True,
    "nothing": None,
    "history": [{"user": "a"}, {"assistant": "b"}],
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ object }}", "[object Object]"),
        ("{{ list }} {{ float }} {{ yes }} {{ nothing }}.", "a,b 2 true ."),
        ("{{ object | dump }} {{ list | dump }} {{ text | dump }}", '{"a":1,"items":"own"} ["a","b"] "ab"'),
        ("{{ list | dump(2) }}", '[\n  "a",\n  "b"\n]'),
        ("{{ '[1, 2]' | load | join('-') }}", "1-2"),
        ("{{ missing }}{{ missing.of.it }}.", "."),
        ("{{ missing | default('d') }} {{ missing or text }} {{ text if missing else 'e' }}", "d ab e"),
        ("{% for m in history %}{% for k, v in m %}{{ k }}={{ v }};{% endfor %}{% endfor %}", "user=a;assistant=b;"),
        ("{% for one in missing %}x{% else %}none{% endfor %}", "none"),
        ("{% if empty %}y{% else %}n{% endif %}", "y"),
        ("{% if one == '1' %}y{% elseif yes === true %}z{% endif %}", "y"),
        ("{% if one == '2' %}y{% else if yes !== false %}z{% endif %}", "z"),
        ("{{ text.toUpperCase() }} {{ text.length }} {{ list.length }} {{ object.items }}", "AB 2 2 own"),
        ("{{ text.includes('b') }} {{ text.split('') | join('-') }} {{ list.indexOf('b') }}", "true a-b 1"),
        ("{{ 'a' + 1 }} {{ 1 + 1 }} {{ 2.5 | round }}", "a1 2 3"),
        ("{# note #}a", "a"),
        ("{% raw %}{{ a === b }}{% endraw %}", "{{ a === b }}"),
        ("{{ '===' }}", "==="),
        ("{{ 'abcdef' | truncate(4, true, '') }}", "abcd"),
    ],
)
def test_a_template_gives_what_nunjucks_gives(template: str, text: str) -> None:
    assert render(template, Scope(VARS, {}, language=PROMPTFOO)) == text


@pytest.mark.parametrize("template", ["{{ text.upper() }}", "{{ missing() }}", "{% if a %}", "{{ a ? b : c }}"])
def test_what_nunjucks_refuses_is_refused(template: str) -> None:
    with pytest.raises(RenderError):
        render(template, Scope(VARS, {}, language=PROMPTFOO))


def test_a_missing_variable_is_empty_in_jinja_too_where_that_is_asked_for() -> None:
    assert render("{{ missing }}a{{ missing.b }}", Scope({}, {}, language=Language(missing_empty=True))) == "a"
    assert render("{{ missing }}", Scope({}, {}, language=Language(missing_empty=True))) == ""
    with pytest.raises(RenderError, match="'X' is not set"):
        render("{{ env.X }}", Scope({}, {}, language=Language(missing_empty=True)))
