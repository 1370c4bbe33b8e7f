"""A line that resembles an earlier one gives the same case and diagnostics as if it were parsed in full."""

from __future__ import annotations

import json

import pytest

from agentv.authoring.cases.data_files.jsonl import JsonLines
from doubles.loading import outcome, repository

FIRST = {
    "id": "one",
    "input": "What is one?",
    "expected_output": "1",
    "vars": {"language": "English", "level": 3},
    "metadata": {"topic": "numbers", "governance": {"risk": "low"}},
    "tags": ["easy"],
    "assert": [
        {"type": "contains", "value": "1"},
        {"not-icontains": "two"},
        {"type": "regex", "value": "[0-9]", "flags": "i", "weight": 2},
        {"type": "is-json"},
        {"type": "equals", "value": "1"},
        {"type": "not-contains", "value": "zero"},
    ],
}


def line(**changes) -> str:
    return json.dumps({**FIRST, "id": "two", **changes})


def entries(*changes: tuple[int, object]) -> str:
    found = list(FIRST["assert"])
    for place, entry in changes:
        found[place] = entry
    return line(**{"assert": found})


KNOWN = {
    "another id": line(),
    "another input": line(input='What is two?\n\t"2" \\ \u00e9 \U0001f600'),
    "text that is written in escapes": line().replace("What", "\\u0057h\\u0061t"),
    "another reference": line(expected_output="2"),
    "other variables": line(vars={"language": "German", "level": 3}),
    "other metadata": line(metadata={"topic": "words", "governance": {"risk": "low"}}),
    "other values of assertions": entries((0, {"type": "contains", "value": "1 "}), (1, {"not-icontains": "three"})),
    "another pattern": entries((2, {"type": "regex", "value": "[0-9]+", "flags": "i", "weight": 2})),
    "all of it": line(input="2", vars={"language": "Dutch", "level": 3}),
}
READ_IN_FULL = {
    "another number": line(vars={"language": "English", "level": 4}),
    "another tag": line(tags=["hard"]),
    "other risks": line(metadata={"topic": "numbers", "governance": {"risk": "high"}}),
    "another type": entries((0, {"type": "icontains", "value": "1"})),
    "another order of keys": json.dumps(dict(reversed(json.loads(line()).items()))),
    "a placeholder": line(input="What is {{ language }}?"),
    "no id": line(id=" "),
    "no input": line(input=""),
    "no text to find": entries((0, {"type": "contains", "value": ""})),
    "input that looks like a file": line(input="file://prompt.txt"),
    "text to find in a file": entries((0, {"type": "contains", "value": "file://expected.txt"})),
    "a pattern that is none": entries((2, {"type": "regex", "value": "[0-9", "flags": "i", "weight": 2})),
    "a pattern that fits everything": entries((2, {"type": "regex", "value": ".*", "flags": "i", "weight": 2})),
    "a text that must and must not occur": entries((5, {"type": "not-contains", "value": "1"})),
    "half of a character": line().replace("What", "\\ud800"),
    "a byte that stands for another": line().replace("What", "W\x01t"),
    "a byte that no text holds": line().replace("What", "W\tt"),
    "an escape that there is none": line().replace("What", "\\x"),
    "a text without its end": line()[:-1] + ', "',
    "a key twice": line()[:-1] + ', "id": "three"}',
}
ALL = {**KNOWN, **READ_IN_FULL}


def read(folder, text: str, header: str = ""):
    """Return the cases of a file, all diagnostics, and the number of lines parsed in full."""
    files = {"cases.jsonl": text.encode(errors="surrogatepass"), "cases.yaml": f"target: echo\n{header}"}
    files["expected.txt"] = "1\n"
    files["prompt.txt"] = "Answer in {{ language }}."
    files[".agentv/templates/language.yaml"] = "assert: [{not-icontains: '{{ language }}'}]"
    suites, found = outcome(repository(folder, files) / "cases.jsonl")
    return list(suites[0].cases) if suites else [], [one for one in found if one.span.line > 1]


@pytest.fixture
def full(monkeypatch) -> list[int]:
    """Record the numbers of the lines parsed in full."""
    numbers: list[int] = []
    node = JsonLines.node

    def noted(self, number, record, report):
        numbers.append(number)
        return node(self, number, record, report)

    monkeypatch.setattr(JsonLines, "node", noted)
    return numbers


@pytest.mark.parametrize(
    "header", ["", "assert: [{min-tokens: 1}]\n", "regex: javascript\n"], ids=["", "assert", "regex"]
)
@pytest.mark.parametrize("name", ALL)
def test_a_line_is_read_as_if_it_stood_alone(tmp_path, full, name, header):
    alone, told_alone = read(tmp_path, f"\n{ALL[name]}\n", header)
    full.clear()
    both, told = read(tmp_path, f"{json.dumps(FIRST)}\n{ALL[name]}\n", header)
    assert both[1:] == alone
    assert told == told_alone
    assert (2 in full) == (name in READ_IN_FULL)


@pytest.mark.parametrize("header", ["assert: [{include: language}]\n", "prompt: prompt.txt\n"])
def test_what_other_files_give_a_line_has_the_variables_of_the_line(tmp_path, header):
    first = {key: value for key, value in FIRST.items() if key != "input" or "prompt" not in header}
    other = json.dumps(first | {"id": "two", "vars": {"language": "German", "level": 3}})
    alone, _ = read(tmp_path, f"\n{other}\n", header)
    both, _ = read(tmp_path, f"{json.dumps(first)}\n{other}\n", header)
    assert both[1:] == alone
    assert "German" in repr((both[1].input, both[1].assertions))
