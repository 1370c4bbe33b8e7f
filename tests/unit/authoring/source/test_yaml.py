"""YAML 1.2 core as nodes with positions."""

import math
import re
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentv.authoring.source.nodes import ListNode, MapNode, Scalar, plain, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import BREAKS, read_yaml
from doubles.loading import parsed

NUMBER = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+|0x[\da-fA-F]+")
"""Texts that YAML 1.2 reads as numbers. PyYAML writes YAML 1.1, and does not quote some of them."""

TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters=[*BREAKS, "\ufeff"]), max_size=30
).filter(lambda text: not NUMBER.fullmatch(text))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def told(data: bytes) -> list[str]:
    report = Report()
    read_yaml("file.yaml", data, report)
    return [one.code for one in report.diagnostics]


@given(st.binary(max_size=200))
def test_any_bytes_are_nodes_or_are_told_what_is_wrong(data):
    report = Report()
    node = read_yaml("file.yaml", data, report).value
    assert node is None or isinstance(node, Scalar | ListNode | MapNode)
    for one in report.diagnostics:
        assert one.span.line >= 1


@given(st.text("{}[]:-#&*!|>'\"%@`\n\t ax1.~<?,", max_size=60))
def test_any_punctuation_is_nodes_or_is_told_what_is_wrong(text):
    report = Report()
    node = read_yaml("file.yaml", text.encode(), report).value
    if node is None and not report.failed:
        # an empty document is valid YAML: the file's reader reports it
        assert yaml.safe_load(text) is None


@given(DATA, st.booleans())
def test_what_a_dumper_writes_is_read_back(data, flow):
    text = yaml.safe_dump(data, allow_unicode=True, default_flow_style=flow, sort_keys=False)
    assert plain(parsed(text)) == data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in ("no", "on", "y", "yes", "1_000", "12:30:00", "2026-11-21", "nULL", "tRUE", "0b11")),
        *((text, text) for text in ("0o8", ".iNF", "NaN", "1e", ".", "1.2.3", "=", "<<")),
        ("012", 12),
        (".5", 0.5),
        ("True", True),
        ("NULL", None),
        ("1" * 401, "1" * 401),
        ('"1"', "1"),
        ("'true'", "true"),
        ("!!str 1", "1"),
        ("!!float 1", 1.0),
        ("! 1", "1"),
        ("-0x1F", "-0x1F"),
        ("+0o7", "+0o7"),
        (".INF", math.inf),
        ("1e400", math.inf),
        ("\u0661", "\u0661"),
    ],
)
def test_scalars_mean_what_the_core_schema_says(text, value):
    (item,) = parsed(f"- {text}").items
    assert type(item.value) is type(value)
    assert item.value == value


@pytest.mark.parametrize(
    "text",
    [
        r'{a: "\ud83d\ude00", b: 1}',
        r'{a: "\ud83d\ude00 \" \ud83d\ude01", b: 1}',
        '{a: "\\ud83d\\ude00\n  \\ud83d\\ude01 \\"x\\"", b: 1}',
        r'{"\ud83d\ude00":1,b: 1}',
    ],
)
def test_what_follows_jsons_escapes_of_a_character_keeps_its_place(text):
    found = parsed(text)
    at = span_of(found.keys["b"])
    assert text.split("\n")[at.line - 1][at.column - 1 :].startswith("b: 1}")
    key, value = next(iter(plain(found).items()))
    assert (value if key == "a" else key).startswith("\U0001f600")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("a: 1\n'a': 2\n", ["duplicate-key"]),
        ("- &a x\n- *a : 1\n", ["bad-key"]),
        ("&a [*a]\n", ["bad-yaml"]),
        ("a: !!binary aGk=\n", ["unknown-tag"]),
        ("a: !!python/object/apply:os.system [ls]\n", ["unknown-tag"]),
        ("a: !!map [1]\n", ["unknown-tag"]),
        ("!!int 1: a\n", ["unknown-tag"]),
        ("!thing a: 1\n", ["unknown-tag"]),
        ("!!str 1: a\n", []),
        ("%YAML 1.1\n---\na: no\n", []),
        ("%YAML 2.0\n---\na: no\n", ["bad-yaml"]),
        ("1: a\n'1': b\n", ["duplicate-key"]),
        ("&a {b: *a}\n", ["bad-yaml"]),
        ("&a\n<<: *a\n", ["bad-yaml"]),
        ("a: x\0y\n", ["bad-yaml"]),
        ("a: \uffff\n", ["bad-yaml"]),
        ('a: "\\ud800"\n', ["bad-yaml"]),
        ("a: 1\n\t\nb: 2\n", ["bad-yaml"]),
        ("!!int one\n", ["bad-value"]),
        ("!!bool yes\n", ["bad-value"]),
    ],
)
def test_what_is_wrong_has_its_code(text, codes):
    assert told(text.encode()) == codes


def test_aliases_do_not_add_up_beyond_the_depth():
    level = "[" * 40
    text = f"- &a {level}{']' * 40}\n- &b {level}*a{']' * 40}\n- [*a, *b]\n- {level}*b{']' * 40}\n"
    assert told(text.encode()) == ["too-deep"]
    assert told(text.rsplit("- ", 1)[0].encode()) == []


def streamed(text: str) -> tuple[list[object], dict[str, object], list[str]]:
    """Return the streamed items, the head read before them, and the diagnostics."""
    items: list[object] = []
    heads: list[MapNode] = []

    def begin(head: MapNode):
        heads.append(MapNode(dict(head.items), dict(head.keys), head.at))
        return lambda node: items.append(plain(node))

    report = Report()
    read_yaml("file.yaml", text.encode(), report, stream=(frozenset({"tests"}), begin))
    return items, plain(heads[0]) if heads else {}, [one.code for one in report.diagnostics]


MANY = 2_000
"""Maximum number of nodes per case in the next test, low to keep its texts short."""


@pytest.mark.parametrize(
    ("text", "items", "codes"),
    [
        ("x-a: [" + "1, " * MANY + "1]\ntests:\n- 1\n", 0, ["too-large"]),
        ("tests:\n- 1\n- [" + "1, " * MANY + "1]\n", 0, ["too-large"]),
        ("tests: [" + "1, " * MANY + "1]\n", MANY + 1, []),
        ("a: &a {b: 1}\n<<: *a\ntests: [" + "1, " * MANY + "1]\n", 0, []),
    ],
    ids=["beside the cases", "in one case", "cases", "cases that are not streamed"],
)
def test_one_case_has_bounds_and_their_number_has_none(monkeypatch, text, items, codes):
    monkeypatch.setattr("agentv.authoring.source.yaml.NODE_LIMIT", MANY)
    found, _, told = streamed(text)
    assert (len(found), told) == (items, codes)


@pytest.mark.parametrize("text", ["---", "--- ", "---\n", "# x\n---", "--- !!str", "--- ''", '--- ""'])
def test_an_empty_document_stands_inside_its_file(text):
    span = span_of(parsed(text).at)
    assert span.line <= text.count("\n") + 1
    assert span.end_line <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("".join("  " * level + "a:\n" for level in range(1000)), ["too-deep"]),
        ("- " * 100_000 + "x", ["too-deep"]),
        ("? " * 100_000, ["bad-key"]),
        ("[" * 100_000 + "]" * 100_000, ["too-deep"]),
        ("[" * 99 + "\n" * 100_000, ["bad-yaml"]),
        ("a: " * 100_000, ["bad-yaml"]),
        ('a: "' + "x: " * 100_000 + '\\d"', ["bad-yaml"]),
        ("'" * 100_001, ["bad-yaml"]),
        ("a: " + "x" * 5_000_000, []),
        ("[" + ",".join(["1"] * 50_000) + "]", []),
        ("b: &b {x: 1}\nm:\n" + "  <<: *b\n" * 5000, []),
        ("b: &b {x: 1}\nm:\n  <<: [" + ",".join(["*b"] * 5000) + "]\n", []),
        (
            "b: &b {" + ",".join(f"k{n}: 1" for n in range(5000)) + "}\n" + "m: {<<: [" + "*b, " * 5000 + "]}",
            ["too-large"],
        ),
        ("m0: &m0 {a: 1}\n" + "".join(f"m{n}: &m{n} {{<<: *m{n - 1}}}\n" for n in range(1, 2000)), ["too-deep"]),
    ],
)
def test_however_much_is_asked_it_is_read_or_refused_in_bounded_time(text, codes):
    assert told(text.encode()) == codes


def test_a_billion_laughs_take_no_memory():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    tracemalloc.start()
    try:
        assert told("\n".join(lines).encode()) == ["too-large"]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
