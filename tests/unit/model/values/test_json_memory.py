"""What JSON takes in memory is estimated from its text, however the text is cut, and never far below the truth."""

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.json_memory import JsonMemory, takes_too_much

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='a"\\\\[{,: ü'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='k"\\\\'), inner),
)


def needed(data, size=None):
    memory = JsonMemory()
    for start in range(0, len(data), size or len(data)):
        memory.feed(data[start : start + (size or len(data))])
    return memory.needed


def counted(value):
    """The same estimate, of the value."""
    if isinstance(value, str):
        return 64
    if isinstance(value, list):
        return 160 + 32 * max(0, len(value) - 1) + sum(map(counted, value))
    if isinstance(value, dict):
        return 160 + 32 * max(0, len(value) - 1) + sum(64 + 64 + counted(one) for one in value.values())
    return 0


@given(VALUES, st.integers(1, 9), st.booleans())
def test_the_estimate_is_of_the_values_and_not_of_what_strings_hold(value, size, ascii_only):
    data = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert needed(data) == needed(data, size) == counted(value)


@pytest.mark.parametrize(
    "one", ["[]", "{}", "[[]]", "[{}]", '{"a": 0}', '"ab"', "1.5", '[1, 2, ["x"]]', '{"a": {"b": []}}']
)
def test_no_value_takes_much_more_than_is_estimated(one):
    text = "[" + ", ".join([one] * 20_000) + "]"
    tracemalloc.start()
    value = json.loads(text)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(value) == 20_000
    assert taken < 1.25 * needed(text.encode())


@pytest.mark.parametrize(
    ("text", "too_much"),
    [
        ("[" + "[]," * 1_000_000 + "[]]", True),
        ("  {" + '"a": {},' * 1_000_000 + '"a": 0}', True),
        ("[" + "1," * 3_000_000 + "1]", False),
        ('["' + "[]," * 1_000_000 + '"]', False),
        ("[]," * 1_000_000, True),
        ("say: " + "[]," * 1_000_000, False),
        ("[" + "[]," * 100_000 + "[]]", False),
    ],
)
def test_what_takes_too_much_to_be_read(text, too_much):
    assert takes_too_much(text) is too_much
