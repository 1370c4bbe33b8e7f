"""Placeholders (SPEC section 6)."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.templating import JINJA, RenderError, Scope, evaluate, render, undeclared
from agentv.templating.templates import compiled, run


def rendered(text: str, **variables):
    return render(text, Scope(variables, {"HOME": "/root", "KEY": "value"}))


@pytest.mark.parametrize(
    ("text", "variables", "value"),
    [
        ("{{ x }}", {"x": 3}, 3),
        ("{{x}}", {"x": [1, {"a": None}]}, [1, {"a": None}]),
        ("{{ x }}", {"x": None}, None),
        ("a {{ x }} b {{ y }}", {"x": 1.5, "y": True}, "a 1.5 b true"),
        ("{{ x.a.b }}", {"x": {"a": {"b": 1}}}, 1),
        ("{{ vars.x }}", {"x": 1}, 1),
        ("{{ env.HOME }}", {}, "/root"),
        ("${{ HOME }}", {}, "/root"),
        ("in ${{ HOME }}/x", {"HOME": "no"}, "in /root/x"),
        ("{{ x | map('upper') }}", {"x": ["a", "b"]}, ["A", "B"]),
        ("{{ range(3) }}", {}, [0, 1, 2]),
        ("{{ nobody | default('d') }}", {}, "d"),
        ("{% for one in x %}{{ one }};{% endfor %}", {"x": [1, 2]}, "1;2;"),
        ("{{ '{{' }} x }}", {}, "{{ x }}"),
        ("{# no comment #} {{ x }}", {"x": 1}, "{# no comment #} 1"),
        ("{{ x }} {{ x }}", {"x": "{{ y }}"}, "{{ y }} {{ y }}"),
        ("a {{- x -}} b", {"x": 1}, "a1b"),
        ("{{ result }}", {"result": 5}, 5),
        ("{{ x | reverse }} {{ x | map('upper') }}", {"x": ["a", "b"]}, '["b", "a"] ["A", "B"]'),
        ("{{ x.items() }} {{ range(2) }}", {"x": {"a": 1}}, '[["a", 1]] [0, 1]'),
        ("{{ 'A' ~ true ~ none ~ 2.0 ~ x }}", {"x": ["a", None]}, 'Atruenull2.0["a", null]'),
        ("{{ ('A' ~ true) | lower }}!", {}, "atrue!"),
    ],
)
def test_what_a_text_becomes(text, variables, value):
    found = rendered(text, **variables)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("key", ["items", "keys", "values", "get", "pop", "update", "copy"])
@pytest.mark.parametrize("text", ["{{ order.%s }}", "{{ order.%s }}!", "{{ vars.order.%s }}"])
def test_a_key_of_a_variable_is_no_method_of_pythons(text, key):
    assert rendered(text % key, order={key: ["book"]}) == ('["book"]!' if text.endswith("!") else ["book"])


@pytest.mark.parametrize(
    "text",
    [
        *("{{ order.items }}", "x {{ order.items }}", "{{ range }}", "x {{ range }}", "{{ env }}", "x {{ env }}"),
        *("{% for one in [1] %}{{ loop }}{% endfor %}", "x {{ 'a'.encode() }}", "x {{ namespace() }}"),
    ],
)
def test_what_is_no_value_is_refused(text):
    with pytest.raises(RenderError, match="the expression must be a value, found") as caught:
        rendered(text, order={})
    assert caught.value.code == "bad-template"


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("{{ nobody }}", "undefined-variable", "nobody"),
        ("x {{ nobody }}", "undefined-variable", "nobody"),
        ("{{ nobody }}{{ not }}", "bad-template", None),
        ("{{ x.nobody }}", "undefined-variable", "nobody"),
        ("{% if nobody %}a{% endif %}", "undefined-variable", "nobody"),
        ("{{ env.NOBODY }}", "unset-environment", "NOBODY"),
        ("x ${{ NOBODY }}", "unset-environment", "NOBODY"),
        ("{{ x | nofilter }}", "bad-template", None),
        ("{{ 1 / 0 }}", "bad-template", None),
        ("x {{ x + 1 }}", "bad-template", None),
        ("{{ ''.__class__.__mro__ }}", "undefined-variable", "__class__"),
        ("{{ x.a.append(1) }}", "undefined-variable", "append"),
    ],
)
def test_what_cannot_be_rendered(text, code, name):
    with pytest.raises(RenderError) as caught:
        rendered(text, x={"a": [1]})
    assert caught.value.code == code
    assert caught.value.name == name


NAMES = st.sampled_from(
    ["a", "b", "items", "vars", "env", "not", "true", "None", "self", "loop", "_x", "range", "nobody"]
)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
)
PIECES = st.one_of(
    NAMES.map(lambda name: "{{ " + name + " }}"),
    NAMES.map(lambda name: "{{" + name + "}}"),
    NAMES.map(lambda name: "${{ " + name + " }}"),
    NAMES.map(lambda name: "{{- " + name + " | string }}"),
    st.sampled_from(
        ["x", " ", "\n", "\r\n", "$", "}}", "{", "}", "{#", "{{ '{{' }}", "{% raw %}{{ a }}{% endraw %}", "ü"]
    ),
)


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.dictionaries(NAMES, VALUES, max_size=6))
def test_plain_names_are_filled_in_as_the_template_would(text, variables):
    scope = Scope(variables, {"a": "of the environment"})
    text = f"{text}."  # not only a placeholder
    modern = re.sub(r"\$\{\{ (\w+) \}\}", r"{{ env.\1 }}", text)

    def outcome(function):
        try:
            return function()
        except RenderError as error:
            return (error.code, error.name)

    assert outcome(lambda: render(text, scope)) == outcome(lambda: run(compiled(modern, JINJA), scope))


def test_a_list_that_is_too_short_says_how_many_items_it_has():
    said = {
        ("context[0].text", 0): "there is no item 0: the list has 0 items",
        ("context[2]", 2): "there is no item 2: the list has 2 items",
        ("context[-2].text", 1): "there is no item -2: the list has 1 item",
        ("[context][1]", 1): "there is no item 1: the list has 1 item",
    }
    for (expression, count), message in said.items():
        items = [{"text": "a"}] * count
        with pytest.raises(RenderError) as refused:
            evaluate(expression, Scope({}, {}, {"context": items}))
        assert refused.value.message == message
        with pytest.raises(RenderError) as refused:
            render(f"see {{{{ {expression} }}}}", Scope({"context": items}, {}))
        assert refused.value.message == message


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "9" * 5000 + " }}",
        "{{ 99 ** 99 ** 99 ** 99 }}",
        "{{ 10 ** 3000 * 10 ** 3000 }}",
        "{{ 'a' * 10 ** 10 }}",
        "{% for a in [1] %}" * 60 + "x" + "{% endfor %}" * 60,
        "{% if 1 %}" * 200 + "x" + "{% endif %}" * 200,
        "{{ " + "(" * 300 + "1" + ")" * 300 + " }}",
        "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    ],
)
def test_what_would_take_all_time_or_memory_is_refused(text):
    with pytest.raises(RenderError) as caught:
        render(text, Scope({}, {}))
    assert caught.value.code == "bad-template"
    assert "\n" not in caught.value.message
    with suppress(RenderError):
        undeclared(text)


@pytest.mark.parametrize(
    "text",
    ["{{ [nobody] }}", "{{ [[nobody]] }}", "{{ {'a': nobody} }}", "{{ ['x'] | map('upper') | list + [nobody] }}"],
)
def test_an_undefined_name_inside_a_list_or_mapping_is_told_too(text):
    with pytest.raises(RenderError) as caught:
        render(text, Scope({}, {}))
    assert (caught.value.code, caught.value.name) == ("undefined-variable", "nobody")


def test_an_expression_is_plain_data_to_its_innermost_part():
    assert render("{{ [['a'] | map('upper')] }}", Scope({}, {})) == [["A"]]
    assert render("{{ {1: (2, 3)} }}", Scope({}, {})) == {"1": [2, 3]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (None, "null"),
        ([True, 1.5, "ä"], '[true, 1.5, "ä"]'),
        ({"a": None}, '{"a": null}'),
    ],
)
def test_what_stands_inside_a_text_is_written_as_json_writes_it(value, text):
    assert rendered("so: {{ x }}", x=value) == f"so: {text}"
    assert rendered("so: {{ x | default(1) }}", x=value) == f"so: {text}"


@pytest.mark.parametrize("text", ["{{ env | string }}", "x {{ env ~ '' }}", "x {{ env }}"])
def test_the_whole_environment_has_no_text(text):
    with pytest.raises(RenderError, match="the whole environment"):
        render(text, Scope({}, {"SECRET": "x"}))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("plain", set()),
        ("{{ a }} and {{b}}", {"a", "b"}),
        ("{{{ a }}", None),
        ("{% for x in xs %}{{ x }}{{ loop.index }}{% endfor %}", {"xs"}),
        ("{{ true }} {{ env.A }} {{ vars.b }}", {"env", "vars"}),
        ("${{ A }}", {"env"}),
    ],
)
def test_the_names_that_a_template_reads(text, names):
    if names is None:
        with pytest.raises(RenderError):
            undeclared(text)
    else:
        assert undeclared(text) == names


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("{% include 'x' %}", "include"),
        ("{%- include 'x' ignore missing %}", "include"),
        ("{% if no is defined %}{% include ['x', 'y'] %}{% endif %}", "include"),
        ("{% import 'x' as y %}", "import"),
        ("{% from 'x' import y %}", "from"),
        ("{% extends 'x' %}", "extends"),
    ],
)
def test_a_template_cannot_include_others(tag, name):
    for read in (rendered, undeclared):
        with pytest.raises(
            RenderError, match=f"a template cannot include other templates with '{{% {name} %}}'"
        ) as caught:
            read(f"one\n\n{tag}")
        assert (caught.value.code, caught.value.line) == ("bad-template", 3)
