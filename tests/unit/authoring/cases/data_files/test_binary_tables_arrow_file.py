"""Parquet and Arrow files of cases: types, and files with wrong content."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from agentv.errors import LoadError
from doubles.loading import outcome, repository
from needs import imported, needs

pytestmark = needs("pyarrow")
pa = imported("pyarrow")
pq = imported("pyarrow.parquet")

SUITE = "target: echo\ninput: 'ask {{ q }}'\nassert: [contains: a]\ntests: cases.SUFFIX\n"


def write(table: pa.Table, path) -> None:
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    elif path.suffix == ".feather":
        imported("pyarrow.feather").write_feather(table, path)
    else:
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)


def loaded(folder, table: pa.Table | bytes, suffix: str = ".parquet", suite: str = SUITE):
    """Return the cases of a table and the diagnostics."""
    repository(folder, {"suite.eval.yaml": suite.replace(".SUFFIX", suffix)})
    if isinstance(table, bytes):
        (folder / f"cases{suffix}").write_bytes(table)
    else:
        write(table, folder / f"cases{suffix}")
    suites, found = outcome(folder / "suite.eval.yaml")
    return (suites[0].cases if suites else None), [(one.code, one.span.line, one.message, one.hint) for one in found]


def all_types() -> pa.Table:
    return pa.table(
        {
            "q": ["lamp", None],
            "big": pa.array([2**62, None], pa.int64()),
            "unsigned": pa.array([2**64 - 1, 0], pa.uint64()),
            "short": pa.array([0.1, 2.5], pa.float32()),
            "price": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "day": pa.array([dt.date(2024, 1, 31), None]),
            "at": pa.array([dt.datetime.fromisoformat("2024-01-31T10:05"), None], pa.timestamp("ns", "UTC")),
            "naive": pa.array([dt.datetime.fromisoformat("2024-01-31"), None], pa.timestamp("s")),
            "tags": pa.array([["a", None], []], pa.list_(pa.string())),
            "who": pa.array([{"name": "Ada", "ages": [1.5]}, None]),
            "pairs": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "ok": [True, None],
            "none": pa.nulls(2),
            "__metadata:area[]": pa.array([["north", "east"], None]),
            "__metadata:size": [3, None],
            "__threshold": [0.5, None],
            "__id": [17, 18],
        }
    )


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
def test_values_keep_their_types(tmp_path, suffix):
    cases, found = loaded(tmp_path, all_types(), suffix)
    assert found == []
    first, second = cases
    assert dict(first.vars) == {
        "q": "lamp",
        "big": 2**62,
        "unsigned": 2**64 - 1,
        "short": 0.1,
        "price": 1.5,
        "day": "2024-01-31",
        "at": "2024-01-31T10:05:00+00:00",
        "naive": "2024-01-31T00:00:00",
        "tags": ["a", None],
        "who": {"name": "Ada", "ages": [1.5]},
        "pairs": {"k": 1},
        "kind": "x",
        "ok": True,
        "none": None,
    }
    assert (first.id, first.threshold, dict(first.metadata)) == ("17", 0.5, {"area": ["north", "east"], "size": 3})
    assert second.vars["q"] is None
    assert type(first.vars["big"]) is int


def test_a_value_without_a_form_in_json_is_refused(tmp_path):
    table = pa.table({"q": ["a"], "raw": [b"\x00"], "deep": [[{"x": b"1"}]], "took": [dt.timedelta(seconds=1)]})
    _, found = loaded(tmp_path, table)
    assert [(code, message) for code, _, message, _ in found] == [
        ("bad-table", "row 1, column 'deep': a value of the type bytes is not a value of JSON"),
        ("bad-table", "row 1, column 'raw': a value of the type bytes is not a value of JSON"),
        ("bad-table", "row 1, column 'took': a value of the type timedelta is not a value of JSON"),
    ]
    assert found[0][3] == "write null, convert the column to text or numbers, or drop it"


def test_a_wrong_value_is_reported_with_row_and_column(tmp_path):
    long = Decimal("0.1234567890123456789")
    table = pa.table(
        {
            "q": ["a", "b", "b", "c"],
            "score": [1.0, float("nan"), float("-inf"), None],
            "exact": pa.array([None, None, None, long], pa.decimal128(20, 19)),
            "__threshold": [None, None, None, 80],
        }
    )
    _, found = loaded(tmp_path, table)
    assert [(line, message) for _, line, message, _ in found] == [
        (2, "row 2, column 'score': NaN is not a value of JSON"),
        (3, "row 3, column 'score': an infinite number is not a value of JSON"),
        (4, f"row 4, column 'exact': {long} has more digits than a number keeps; store the column as text"),
    ]


def test_columns_follow_the_rules_of_csv(tmp_path):
    table = pa.table([["a"], ["x"], ["1"], ["y"], [["contains: a"]]], names=["q", "__nope", "_id", "", "__expected"])
    codes = [(code, message) for code, _, message, _ in loaded(tmp_path / "a", table)[1]]
    assert ("unknown-key", "unknown special column '__nope'") in codes
    assert ("bad-table", "column 4 has no name") in codes
    assert [code for code, _ in codes].count("nearly-a-column") == 1
    twice = pa.table([["a"], ["b"]], names=["q", "q"])
    assert [one[0] for one in loaded(tmp_path / "b", twice)[1]] == ["duplicate-key"]
    shown = loaded(tmp_path / "c", pa.table({"q": ["a"], "__expected": [["contains: a"]]}))[1][0][2]
    assert shown == "row 1, column '__expected': '__expected' needs text, found a list"


def test_markup_and_placeholders_in_data_stay_data(tmp_path):
    table = pa.table({"q": ["{{ env.HOME }}"], "<script>alert(1)</script>": ["\x1b[31m"]})
    cases, found = loaded(tmp_path, table)
    assert found == []
    assert next(iter(cases)).input[0].text == "ask {{ env.HOME }}"
    code = pa.table({"q": ["a"], "__expected": ["python: print(1)"]})
    assert [one[0] for one in loaded(tmp_path / "code", code)[1]] == ["untrusted-data"]


def test_a_damaged_file_is_an_error_and_never_a_crash(tmp_path):
    """Change every byte of the footer, and some of the data."""
    small = pa.table({"q": ["lamp", "chair"], "n": [1, 2], "l": [["a"], ["b"]]})
    for suffix in (".parquet", ".feather", ".arrow"):
        write(small, tmp_path / f"good{suffix}")
        data = (tmp_path / f"good{suffix}").read_bytes()
        for place in range(0, len(data), max(len(data) // 25, 1)):
            wrong = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
            cases, found = loaded(tmp_path / f"{suffix}{place}", wrong, suffix)
            try:
                list(cases or ())
            except LoadError as error:
                found += [(one.code, 1, one.message, None) for one in error.diagnostics]
            shown = {one[0] for one in found}
            assert shown <= {"bad-table", "undefined-variable", "unknown-key", "no-tests", "duplicate-key"}
        _, found = loaded(tmp_path / f"{suffix}short", data[: len(data) // 2], suffix)
        assert found[0][0] == "bad-table", (suffix, found)
    assert "this is not a Parquet file that can be read" in loaded(tmp_path / "text", b"q\na\n")[1][0][2]


def test_a_long_file_is_read_again_and_a_changed_one_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("agentv.authoring.cases.collector.MOST_IN_MEMORY", 5)
    table = pa.table({"q": [f"a{number}" for number in range(1100)]})
    cases, found = loaded(tmp_path, table)
    assert (found, len(cases)) == ([], 1100)
    assert [one.id for one in cases][:2] == ["row-1", "row-2"]
    write(table.set_column(0, "q", pa.array([f"b{number}" for number in range(1100)])), tmp_path / "cases.parquet")
    with pytest.raises(LoadError, match="was changed during the run"):
        list(cases)


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    from agentv.registry import fields

    monkeypatch.setattr(fields, "_is_installed", lambda module: module != "pyarrow")
    _, found = loaded(tmp_path, all_types())
    said = "reading a Parquet file requires pyarrow, which is not installed"
    assert found == [("missing-extra", 4, said, "pip install 'agentv[data]'")]
