"""CSV files of cases: streamed, checked once and read again. What columns mean is in `tests/cases`."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.app.registries import registries
from agentv.authoring.assertions.typed_entries import AssertionTypes
from agentv.authoring.cases.data_files.csv_table import Expectations
from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.errors import LoadError
from agentv.model.values.values import Span
from doubles.loading import found_in, outcome, parsed, repository

SIDECAR = 'target: echo\ninput: "{{ q }}"\n'


def suite(folder, text: str | bytes, sidecar: str = SIDECAR):
    path = repository(folder, {"suite.csv": text, "suite.yaml": sidecar}) / "suite.csv"
    suites, found = outcome(path)
    return (suites[0] if suites else None), [(one.code, one.span.line, one.span.column) for one in found]


def table(rows: int) -> str:
    return "q,__expected\n" + "".join(f"{number},{number}\n" for number in range(rows))


@pytest.fixture
def few_held(monkeypatch) -> int:
    """How many cases are held: few, so that a file of which more are read again is short."""
    monkeypatch.setattr("agentv.authoring.cases.streamed.HELD", 200)
    return 200


def test_every_pass_gives_the_same_cases_however_long_the_file(tmp_path, few_held):
    found, told = suite(tmp_path, table(few_held + 5))
    assert told == []
    assert len(found.cases) == few_held + 5
    first, second = ([(one.id, one.sha256, one.span) for one in found.cases] for _ in range(2))
    assert first == second
    assert [one[0] for one in first[:2]] == ["row-1", "row-2"]


def test_the_held_cases_are_those_that_would_be_read_again(tmp_path, monkeypatch):
    held, _ = suite(tmp_path / "a", table(3))
    monkeypatch.setattr("agentv.authoring.cases.streamed.HELD", 1)
    read, _ = suite(tmp_path / "b", table(3))
    assert [one.sha256 for one in held.cases] == [one.sha256 for one in read.cases]


@pytest.mark.parametrize(
    "text",
    [
        "q,__expected\n1,1\n2,2,2\n",
        "q,__expected\n1,1\n\xff",
        'q,__expected\n1,1\n"',
        "q;x\n",
        table(202).replace("\n7,7\n", "\n7,8\n"),
        table(203),
        table(202) + '"',
    ],
    ids=len,
)
def test_a_file_that_was_changed_while_the_run_went_on_is_an_expected_end(tmp_path, few_held, text):
    found, _ = suite(tmp_path, table(few_held + 2))
    (tmp_path / "suite.csv").write_text(text, encoding="latin-1")
    with pytest.raises(LoadError, match="was changed during the run and is not run"):
        list(found.cases)


def test_a_number_keeps_its_digits(tmp_path):
    found, _ = suite(tmp_path, "q,__expected\n1.50,contains:1.50\n")
    (case,) = found.cases
    assert (case.vars, case.assertions[0].assertion.value) == ({"q": "1.50"}, "1.50")


@pytest.mark.parametrize("asks", ["", 'input: ""\n', 'input: "{{ e }}"\n'])
def test_what_is_wrong_with_the_suite_is_told_once(tmp_path, asks):
    _, told = suite(tmp_path, "q,e,__expected\na,,a\n", f"target: echo\n{asks}")
    assert [one for one, _, _ in told] == ["missing-input"]


def test_files_of_the_suite_are_attached_to_what_it_asks(tmp_path):
    (tmp_path / "note.md").write_text("A note.", encoding="utf-8")
    found, _ = suite(tmp_path, "q,__expected\na,contains:A note\n", SIDECAR + "input_files: [note.md]\n")
    (case,) = found.cases
    assert [block["type"] for block in case.input[0].as_json()["content"]] == ["file", "text"]


def test_two_tables_of_one_name_need_ids_of_their_own(tmp_path):
    text = f"{SIDECAR}assert: [{{contains: x}}]\ntests: [a/t.csv, b/t.csv, c/t.csv]\n"
    files = {f"{folder}/t.csv": "q\nx\n" for folder in "abc"}
    assert found_in(tmp_path, text, files) == [("duplicate-id", 2)]


def test_an_id_of_a_row_is_told_from_that_of_a_case(tmp_path):
    text = f"{SIDECAR}assert: [{{contains: x}}]\ntests: [t.csv, {{id: row-2, input: x, vars: {{q: z}}}}]\n"
    path = repository(tmp_path, {"suite.eval.yaml": text, "t.csv": 'q\n"x\ny"\nx\n'}) / "suite.eval.yaml"
    (found,) = outcome(path)[1]
    assert found.message.endswith("t.csv:4")


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text('q,"_:expctd(0)\n{} ', max_size=60).map(str.encode))
def test_any_bytes_are_cases_or_are_told_what_is_wrong(tmp_path, data):
    path = repository(tmp_path, {"suite.csv": b"q,__expected\n" + data, "suite.yaml": SIDECAR}) / "suite.csv"
    suites, found = outcome(path)
    assert bool(suites) != any(one.severity == "error" for one in found)


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
    found = expectations().entry("llm-rubric(0.5):x", AT, mark, Report())
    assert found.items["min_score"] is mark


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("contians:x", "contains"),
        ("Contain: x", "contains"),
        ("levenstein(3):x", "levenshtein"),
        ("gradee:x", "grade"),
        ("Answer: 5", None),
        ("Note: contians", None),
        ("12:30", None),
        ("contians", None),
    ],
)
def test_a_text_that_begins_nearly_as_a_type_is_doubted(text, near):
    report = Report()
    expectations().entry(text, AT, None, report)
    assert [one.code for one in report.diagnostics] == (["nearly-an-assertion"] if near else [])
    assert [one.hint.startswith(f"did you mean '{near}:'") for one in report.diagnostics] == ([True] if near else [])
