"""CSV files of cases: streamed, checked once and read again. The meanings of columns are tested in `tests/cases`."""

import pytest

from agentv.app.registries import registries
from agentv.authoring.assertions.typed_entries import AssertionTypes
from agentv.authoring.cases.data_files.csv_table import Expectations
from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.model.values.values import Span
from doubles.loading import outcome, parsed, repository

SIDECAR = 'target: echo\ninput: "{{ q }}"\n'


def suite(folder, text: str | bytes, sidecar: str = SIDECAR):
    suites, found = outcome(repository(folder, {"suite.csv": text, "suite.yaml": sidecar}) / "suite.csv")
    return (suites[0] if suites else None), [(one.code, one.span.line, one.span.column) for one in found]


def test_a_number_keeps_its_digits(tmp_path):
    found, _ = suite(tmp_path, "q,__expected\n1.50,contains:1.50\n")
    (case,) = found.cases
    assert (case.vars, case.assertions[0].assertion.value) == ({"q": "1.50"}, "1.50")


def test_files_of_the_suite_are_attached_to_what_it_asks(tmp_path):
    (tmp_path / "note.md").write_text("A note.", encoding="utf-8")
    found, _ = suite(tmp_path, "q,__expected\na,contains:A note\n", SIDECAR + "input_files: [note.md]\n")
    (case,) = found.cases
    assert [block["type"] for block in case.input[0].as_json()["content"]] == ["file", "text"]


AT = Span("cases.csv", 2, 3, 2, 9)


def expectations() -> Expectations:
    words = registries()
    return Expectations(AssertionTypes(words.assertions, words.custom("/", "/")))


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("Paris", {"equals": "Paris"}),
        ("  Paris \n", {"equals": "Paris"}),
        ("equals: Paris", {"equals": "Paris"}),
        ("equals:", {"equals": ""}),
        ("contains:a:b", {"contains": "a:b"}),
        ("contains: 1.50", {"contains": 1.5}),
        ("not-contains:x", {"not-contains": "x"}),
        ("not_contains_any:x", {"not_contains_any": ["x"]}),
        ("icontains-all: a , b,c", {"icontains-all": ["a", "b", "c"]}),
        ('not-contains-any: "Dear Sir, Madam", foo', {"not-contains-any": ["Dear Sir, Madam", "foo"]}),
        ('contains-all:say ""hi"", b', {"contains-all": ['say ""hi""', "b"]}),
        ("is-json", {"is-json": None}),
        ('is-json:{"type": "object"}', {"is-json": {"type": "object"}}),
        ("is-json:file://s.json", {"is-json": "file://s.json"}),
        ("regex:a(1):b", {"regex": "a(1):b"}),
        ("llm-rubric: Is polite\nand short", {"llm-rubric": "Is polite\nand short"}),
        ("grade:Is polite", {"llm-rubric": "Is polite"}),
        ("grade", {"equals": "grade"}),
        ("javascript: output.length < 3", {"javascript": "output.length < 3"}),
        ("fn:x", {"javascript": "x"}),
        ("python: len(output) < 3", {"python": "len(output) < 3"}),
        ("file://grade.py", {"python": "grade.py"}),
        ("file://grade.ts:polite", {"javascript": "grade.ts:polite"}),
        ("file://answer.txt", {"equals": "file://answer.txt"}),
        ("levenshtein(3):abc", {"type": "levenshtein", "value": "abc", "threshold": 3}),
        ("latency(100)", {"type": "latency", "threshold": 100}),
        ("llm-rubric(0.5):x", {"type": "llm-rubric", "value": "x", "min_score": 0.5}),
        ("trajectory:tool-used:search", {"trajectory:tool-used": "search"}),
        ("classifier:positive", {"classifier": "positive"}),
        ("ratio: 3", {"equals": "ratio: 3"}),
    ],
)
def test_what_a_cell_stands_for(text, entry):
    report = Report()
    found = expectations().entry(text, AT, None, report)
    assert plain(found) == entry
    assert {node.at for node in found.items.values()} == {AT}
    assert report.diagnostics == ()


@pytest.mark.parametrize("prefix", ["javascript", "fn", "eval", "grade"])
def test_a_file_of_the_project_does_not_change_what_a_prefix_means(tmp_path, prefix):
    home = tmp_path / ".agentv" / "assertions"
    home.mkdir(parents=True)
    (home / f"{prefix}.py").write_text("def assertion(ctx, value=None):\n    return True\n")
    words = registries()
    own = Expectations(AssertionTypes(words.assertions, words.custom(str(tmp_path), str(tmp_path))))
    found = own.entry(f"{prefix}:x", AT, None, Report())
    assert plain(found) == plain(expectations().entry(f"{prefix}:x", AT, None, Report()))


def test_a_threshold_of_its_own_column_wins():
    mark = parsed("0.3")
    assert expectations().entry("llm-rubric(0.5):x", AT, mark, Report()).items["min_score"] is mark
