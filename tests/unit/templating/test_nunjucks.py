"""promptfoo's templates give the result of nunjucks 3.2.4, as recorded in the tables, or an error."""

import copy

import pytest

from agentv.templating import Language, RenderError, Scope, render

PROMPTFOO = Language(nunjucks=True, missing_empty=True)
VARS = {
    "object": {"a": 1, "items": "own"},
    "numbered": {"b": 1, "10": 2, "2": 3},
    "list": ["a", "b"],
    "mixed": ["a", True, None],
    "numbers": [3, 1, 2],
    "rows": [{"k": "x", "v": 1}, {"k": "y", "v": None}],
    "pairs": [[1, 2], [3, 4]],
    "empty": [],
    "text": "ab",
    "digit": "3",
    "emoji": "a😀",
    "one": 1,
    "float": 2.0,
    "minus": -7,
    "yes": True,
    "nothing": None,
    "history": [{"user": "a"}, {"assistant": "b"}],
}

VALUES = [
    ("{{ object }}", "[object Object]"),
    ("{{ list }} {{ float }} {{ yes }} {{ nothing }}.", "a,b 2 true ."),
    ("{{ mixed }} {{ [1, [2, null], {}] }} {{ range(3) }}", "a,true, 1,2,,[object Object] 0,1,2"),
    ("{{ 0.1 + 0.2 }} {{ 1 / 3 }} {{ 1 / 10000000 }}", "0.30000000000000004 0.3333333333333333 1e-7"),
    ("{{ 12345678901234567890123 }} {{ 2 ** 53 + 1 }}", "1.2345678901234568e+22 9007199254740992"),
    ("{{ {a: 1, 'b': nothing} | dump }} {{ numbered | dump }}", '{"a":1,"b":null} {"2":3,"10":2,"b":1}'),
    ("{{ object | dump }} {{ list | dump }} {{ text | dump }}", '{"a":1,"items":"own"} ["a","b"] "ab"'),
    ("{{ list | dump(2) }} {{ empty | dump(2) }}", '[\n  "a",\n  "b"\n] []'),
    ("{{ missing }}{{ missing.of.it }}{{ list[-1] }}{{ numbers['x'] }}.", "."),
    (r"{{ '\d\n' }}", "d\n"),
    ("a\r\n{{ one }}\r\n", "a\r\n1\r\n"),
]

OPERATORS = [
    ("{{ 'a' + 1 }} {{ 1 + 1 }} {{ '5' - 2 }} {{ '3' * 2 }} {{ [] - 1 }}", "a1 2 3 6 -1"),
    ("{{ minus % 3 }} {{ minus // 2 }} {{ 7 / 2 }} {{ text * 2 }} {{ missing + 1 }}", "-1 -4 3.5 NaN NaN"),
    ("{{ 'A' ~ 1 ~ 2.0 ~ true }} {{ nothing ~ missing ~ mixed }}", "A12true nullundefineda,true,"),
    ("{{ 1 + 2 ~ 3 }} {{ 1 ~ 2 + 3 }} {{ 1 ~ (2 + 3) }} {{ 1 + 1 is odd }}", "33 123 15 false"),
    ("{{ digit == 3 }} {{ digit === 3 }} {{ one === 1.0 }} {{ nothing == missing }}", "true false true true"),
    ("{{ nothing === missing }} {{ empty == '' }} {{ [1] == [1] }} {{ list == list }}", "false true false true"),
    ("{{ yes === true }} {{ yes == 1 }} {{ yes !== 1 }} {{ digit != 3 }}", "true true true false"),
    (
        "{{ '10' < '9' }} {{ '10' < 9 }} {{ nothing < 1 }} {{ missing < 1 }} {{ 3 > 2 > 1 }}",
        "true false true false false",
    ),
    ("{{ 'a' in list }} {{ 'c' not in text }} {{ 'a' in object }} {{ not 'a' in list }}", "true true true false"),
    ("{{ empty and 'y' }} {{ '' or 'n' }} {{ 0 or empty or 'n' }}.", "y n ."),
    ("{% if empty %}y{% endif %}{% if not object %}n{% endif %}{{ 'y' if empty else 'n' }}", "yy"),
    ("{{ not one }} {{ not (one == 2) }} {{ not not one }} {{ 'a' if not one }}.", "false true true ."),
    ("{% if one == '1' %}y{% elseif yes === true %}z{% endif %}", "y"),
    ("{{ missing is defined }} {{ nothing is null }} {{ yes is number }} {{ -1 is odd }}", "false true false false"),
]

FILTERS = [
    ("{{ nothing | upper }}{{ nothing | replace('o', '0') }}{{ nothing | escape }}{{ false | lower }}.", "."),
    ("{{ mixed | replace('a', 'b') }} {{ 21 | replace(1, 2) }} {{ 'aa' | replace('a', 'b', 1) }}", "a,true, 22 ba"),
    (
        "{{ list | reverse }} {{ text | reverse }} {{ numbers | sort }} {{ list | sort(reverse=true) }}",
        "b,a ba 1,2,3 b,a",
    ),
    ("{{ empty | default('d', true) }}{{ missing | default('d') }}{{ nothing | default('d') }}.", "d."),
    ("{{ '[1, 2]' | load | join('-') }} {{ rows | join(',', 'k') }}", "1-2 x,y"),
    ("{{ 2.5 | round }} {{ -2.5 | round }} {{ 1.25 | round(1) }} {{ '2.6' | round }}", "3 -2 1.3 3"),
    ("{{ '7 dogs' | int }} {{ 'x' | int }} {{ 'x' | int(4) }} {{ '2.50kg' | float }} {{ yes | int }}.", "7  4 2.5 ."),
    ("{{ 'a\n\nb' | indent(2) }} {{ 'a\n\nb' | indent(2, true) }}", "a\n  \n  b   a\n  \n  b"),
    ("{{ '<b> it-is' | title }} {{ 'ABC' | capitalize }} {{ '  a ' | trim }}", "<b> It-is Abc a"),
    ("{{ '<a\\'>' | escape | escape }}", "&lt;a&#39;&gt;"),
    ("{{ rows | selectattr('v') | dump }} {{ numbers | sum }} {{ [] | sum }}", '[{"k":"x","v":1}] 6 0'),
    ("{{ object | length }} {{ emoji | length }} {{ one | length }}.", "2 3 ."),
    ("{{ object | list | dump }}", '[{"key":"a","value":1},{"key":"items","value":"own"}]'),
    ("{{ list | first }} {{ list | last }} {{ empty | first }}.", "a b ."),
]

METHODS = [
    ("{{ text.toUpperCase() }} {{ text.length }} {{ list.length }} {{ object.items }}", "AB 2 2 own"),
    ("{{ text.includes('b') }} {{ text.split('') | join('-') }} {{ list.indexOf('b') }}", "true a-b 1"),
    ("{{ list.join('+') }} {{ numbers.slice(-2) }} {{ numbers.includes('3') }}", "a+b 1,2 false"),
    ("{{ 0.5.toFixed(0) }} {{ 1.005.toFixed(2) }} {{ float.toFixed(1) }} {{ float.toString() }}", "1 1.00 2.0 2"),
]

STATEMENTS = [
    ("{# note #}a", "a"),
    ("{# {{ missing | nothing }} #}", ""),
    ("{% raw %}{{ a === b }}{% endraw %}", "{{ a === b }}"),
    ("{{ missing | default('d') }} {{ missing or text }} {{ text if missing else 'e' }}", "d ab e"),
    ("{% for m in history %}{% for k, v in m %}{{ k }}={{ v }};{% endfor %}{% endfor %}", "user=a;assistant=b;"),
    (
        "{% for k, v in numbered %}{{ k }}={{ v }};{% endfor %}{% for a, b in pairs %}{{ b }}{% endfor %}",
        "2=3;10=2;b=1;24",
    ),
    ("{% for a in object %}x{% endfor %}{% for a, b in rows %}[{{ a }}]{% endfor %}", "[][]"),
    ("{% for one in missing %}x{% else %}none{% endfor %}{% for a in text %}{{ a }};{% endfor %}", "nonea;b;"),
    ("{% for x in list %}{{ loop.index }}{{ loop.last }}{{ loop.depth }};{% endfor %}", "1false;2true;"),
    ("{% set a = 1 %}{% for x in numbers %}{% set a = a + x %}{% endfor %}{{ a }}", "7"),
    ("{% for x in list %}{% set a = a ~ x %}{{ a }};{% endfor %}{{ a }}.", "undefineda;undefinedab;."),
    ("{% for x in list %}{% set text = text ~ x %}{% endfor %}{{ text }}", "ab"),
    ("{% for x in list %}{% for y in list %}{% set a = y %}{% endfor %}{{ a }};{% endfor %}", ";;"),
    (
        "{% for x in list %}{% set a = x %}{% for y in list %}{% set a = a ~ y %}{% endfor %}{{ a }};{% endfor %}",
        "aab;bab;",
    ),
    (
        "{% set a %}{% for x in list %}{{ x }}{% endfor %}{% endset %}{% if a %}{% set a = a ~ '!' %}{% endif %}{{ a }}",
        "ab!",
    ),
    ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "12"),
]


@pytest.mark.parametrize(("template", "text"), [*VALUES, *OPERATORS, *FILTERS, *METHODS, *STATEMENTS])
def test_a_template_gives_what_nunjucks_gives(template: str, text: str) -> None:
    variables = copy.deepcopy(VARS)
    assert render(template, Scope(variables, {}, language=PROMPTFOO)) == text
    assert variables == VARS


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ text.upper() }}", "has no attribute 'upper'"),
        ("{{ missing() }}", "'missing' is undefined"),
        ("{% if a %}", "Unexpected end of template"),
        ("{% if a %}{% else if b %}{% endif %}", "expected token 'end of statement block', got 'if'"),
        ("{{ a ? b : c }}", "unexpected char '?'"),
        ("{{ rows | map('k') }}", "No filter named 'map'"),
        ("{{ one | upper }}", "needs a text, found number"),
        ("{{ text | join }}", "needs a list, found string"),
        ("{{ mixed | sort }}", "sorts texts or numbers, found boolean and null and string"),
        ("{{ list | join(separator=',') }}", "unexpected keyword argument"),
        ("{{ 'a' in one }}", "'in' cannot look into number"),
        # nunjucks parses these in an unexpected way
        ("{{ not one == 2 }}", "'not' is for the value next to it"),
        ("{{ 7 * 3 // 2 }}", "put parentheses around the operation with '//'"),
        ("{{ 1, 2 }}", "there is no list without brackets"),
        ("{{ True }}", "write 'true'"),
        ("{{ 'a' 'b' }}", "there is no operator between two texts"),
        ("{{ list[0:1] }}", "there are no slices"),
        ("{% set a, b = 1 %}", "'set' can set one variable"),
        ("{% for x in list if x %}{% endfor %}", "a loop can have no condition"),
        ("{% for x in list %}{% set x = 1 %}{% endfor %}", "a loop sets 'x', which is its variable"),
        ("{% macro m() %}{% endmacro %}{% for x in list %}{% set a = 1 %}{% endfor %}", "with macros cannot set"),
        # unsupported here
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ emoji[1] }}", "JavaScript counts characters such as emoji twice"),
        ("{{ 'a'.replace('a', '$&') }}", "'$' has a meaning in JavaScript's 'replace'"),
        ("{{ '<' | escape | trim }}", "needs a text, found object"),
        ("{% for x in list %}{{ loop }}{% endfor %}", "must be a value, found a LoopContext"),
        ("{{ text.includes }}", "must be a value, found a function"),
        ("{% set a = [1] %}" + "{% set a = [a, a] %}" * 60 + "{{ a | dump }}", "a value is too large"),
        ("{% set a = 'x' %}" + "{% set a = a + a %}" * 60, "a text of more than 10 MB"),
    ],
)
def test_what_nunjucks_refuses_or_means_otherwise_is_refused(template: str, message: str) -> None:
    with pytest.raises(RenderError) as refused:
        render(template, Scope(VARS, {}, language=PROMPTFOO))
    assert message in refused.value.message
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    "template", ["{{ missing }}", "{{ missing ~ 'a' }}", "{% if missing %}{% endif %}", "{{ object.b + 1 }}"]
)
def test_a_variable_that_must_be_set_is_refused(template: str) -> None:
    with pytest.raises(RenderError, match="is not defined"):
        render(template, Scope(VARS, {}, language=Language(nunjucks=True)))
