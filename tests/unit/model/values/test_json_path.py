import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.values.json_path import Missing, parse, read

REPLY = {"choices": [{"message": {"content": "yes", "a b": 1}}, {"message": None}], "0": "zero", "": "nameless"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$", REPLY),
        ("$.choices[0].message.content", "yes"),
        ("choices.0.message.content", "yes"),
        ("$.choices[-1].message", None),
        ("$['choices'][0][\"message\"]['a b']", 1),
        ("[ 'choices' ]".replace(" ", ""), REPLY["choices"]),
        ("$.0", "zero"),
        ("$['']", "nameless"),
        (" $.choices[1].message ", None),
    ],
)
def test_a_path_leads_to_its_value(path, value):
    assert read(parse(path), REPLY) == value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("$.choices[2]", "$.choices[2] leads nowhere: the list has 2"),
        ("$.choices.first", "$.choices.first leads nowhere: found a list of 2 instead of an object"),
        ("$.choises", "$.choises leads nowhere: the object has 'choices', '0', ''"),
        ("$[0]", "$[0] leads nowhere: found an object instead of a list; it has 'choices', '0', ''"),
        ("$.choices[1].message.content", "$.choices[1].message.content leads nowhere: null stands there"),
        ("$.0.length", "$.0.length leads nowhere: str stands there"),
    ],
)
def test_a_path_that_ends_too_early_says_where(path, message):
    found = read(parse(path), REPLY)
    assert isinstance(found, Missing)
    assert str(found) == message


@pytest.mark.parametrize("path", [
    "", "$.", "$..a", "$.a..b", "$[*]", "$.*", "$[0:2]", "$[?(@.a)]", "a b", "$a", "$[a]", "a[", "a.'b",
    "$[99999999999]",
])  # fmt: skip
def test_what_is_no_path_to_one_value_is_refused(path):
    with pytest.raises(ValueError, match="not a path to one value"):
        parse(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="aZ0 ü", max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet="ab .[]$'", max_size=3), inner),
)


@given(json_values, st.data())
def test_every_value_in_a_structure_has_a_path(value, data):
    path, at = "$", value
    while isinstance(at, list | dict) and at and data.draw(st.booleans()):
        step = data.draw(st.sampled_from(range(len(at)) if isinstance(at, list) else sorted(at)))
        if isinstance(step, str) and "'" in step:
            break
        path, at = f"{path}[{step!r}]", at[step]
    assert read(parse(path), value) == at
