import csv
import io
import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import UsageError
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.usage import TokenUsage
from agentv.reports.csv_rows import COLUMNS, render_csv
from agentv.reports.json_report import run_data
from agentv.reports.notebook import LONGEST, SHOWN, frame_of, render_table
from doubles.trials import errored_score, finished, graded, scored, trial
from doubles.views import LOOKS, SUMMARY, run_view
from needs import imported, needs


def read_back(*results):
    return list(csv.DictReader(io.StringIO("".join(render_csv(results, root="/repo")), newline="")))


def cell(text, column="output"):
    (row,) = read_back(finished(output=text))
    return row[column]


def test_a_trial_is_a_line_with_what_its_row_says():
    scores = [
        scored(False, text="contains '30 days'", name="window"),
        graded(0.5, True, name="tone"),
        errored_score(name="tone"),
    ]
    subject = trial("a", tags=("x", "y"), metadata={"k": 1}, prompt_id="p1")
    usage = TokenUsage(5, 6, 11)
    result = finished(
        "failed", trial=subject, score=0.25, scores=scores, token_usage=usage, cost_usd=0.5, metadata={"k": 1}
    )
    (row,) = read_back(result)
    assert list(row) == list(COLUMNS)
    shown = (row["test_id"], row["eval_path"], row["status"], row["score"])
    assert shown == ("a", "evals/refund.eval.yaml", "failed", "0.25")
    assert (row["input"], row["output"], row["prompt_id"]) == ("May I return it?", "No.", "p1")
    assert json.loads(row["scores"]) == {"window": 0.0, "tone": 0.5, "tone (2)": None}
    assert row["failed_checks"].splitlines()[0] == "window: contains '30 days'"
    assert (row["input_tokens"], row["output_tokens"], row["cost_usd"], row["judge_cost_usd"]) == ("5", "6", "0.5", "")
    assert (row["tags"], json.loads(row["metadata"])) == ("x, y", {"k": 1})


def test_variables_retrieved_texts_and_what_grades_need_stand_in_it():
    scores = [graded(0.5, True, name="tone"), errored_score(name="window")]
    scores[0] = replace(scores[0], grade=replace(scores[0].grade, needs=0.25))
    subject = trial("a", vars={"q": "=1", "n": [1, 2]})
    result = finished("failed", trial=subject, scores=scores, context=(RetrievedText("30 days", "faq.md"),))
    lines = "".join(render_csv([result], ["q", "n", "absent"], root="/repo"))
    (row,) = csv.DictReader(io.StringIO(lines, newline=""))
    assert list(row) == [*COLUMNS, "vars.q", "vars.n", "vars.absent"]
    assert (row["vars.q"], row["vars.n"], row["vars.absent"]) == ("'=1", "[1, 2]", "")
    assert json.loads(row["context"]) == [{"text": "30 days", "source": "faq.md"}]
    assert (json.loads(row["passes"]), json.loads(row["needs"])) == ({"tone": True, "window": None}, {"tone": 0.25})


def test_an_errored_trial_says_why_and_has_no_score():
    (row,) = read_back(finished("errored"))
    assert (row["score"], row["error_code"], row["error_message"]) == ("", "timeout", "no answer after 3 s")


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n", "  =1", "\u200b=1", "\uff1d1+1", "\x00=1"],
)
def test_what_a_spreadsheet_would_run_is_text(text):
    assert cell(text).startswith("'")


def test_a_formula_in_any_column_is_text():
    score = scored(False, text="=1", name="=2")
    (row,) = read_back(finished("failed", trial=trial("=3", target="=4", suite="=5", tags=("=6",)), scores=[score]))
    found = [row[name] for name in ("test_id", "target", "suite", "tags", "failed_checks")]
    assert all(one.startswith("'=") for one in found)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_comes_back_but_for_what_is_guarded(text):
    shown = cell(text)
    plain = "".join("\ufffd" if (one < " " or "\x7f" <= one <= "\x9f") and one not in "\t\r\n" else one for one in text)
    assert shown.replace("'", "") == plain.replace("'", "")


@given(st.text(alphabet=";|\t\n\r=+-@ab1 \"',"))
def test_a_program_that_takes_another_separator_finds_no_formula(text):
    lines = "".join(render_csv([finished(output=text, metadata={"a": text})], root="/repo"))
    for separator in ";|\t":
        cells = re.split(rf"[{separator}\r\n]", lines)
        assert not [one for one in cells if re.match(r"[ \"]*(?:[=@]|[+-]\S)", one)]


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\x7f", "\x85", "\x9b"])
def test_control_characters_are_replaced(character):
    assert cell(f"a{character}b") == "a\ufffdb"
    assert cell("a\tb\nc") == "a\tb\nc"


pd = imported("pandas")


@needs("pandas")
def test_a_trial_is_a_row_with_types():
    scores = [scored(False, name="window"), graded(0.5, True, name="tone"), errored_score(name="tone")]
    first = finished(
        "failed",
        trial=trial("a", tags=("x", "y"), vars={"n": 1, "who": {"name": "Ada"}}),
        scores=scores,
        token_usage=TokenUsage(5, 6, 11),
        metadata={"area": "north"},
    )
    frame = frame_of([first, finished(trial=trial("b", vars={"n": 2, "half": 0.5}))], root="/repo")
    assert list(frame["test_id"]) == ["a", "b"]
    assert list(frame["tags"]) == [["x", "y"], []]
    assert list(frame.columns[:5]) == list(COLUMNS)[:5]
    assert frame["vars.who"][0] == {"name": "Ada"}
    kinds = {name: str(frame[name].dtype) for name in ("vars.n", "vars.half", "score", "sample", "input_tokens")}
    assert kinds == {
        "vars.n": "Int64",
        "vars.half": "Float64",
        "score": "float64",
        "sample": "Int64",
        "input_tokens": "Int64",
    }
    assert isinstance(frame["timestamp"].dtype, pd.DatetimeTZDtype)
    assert [frame["scores.window"][0], frame["scores.tone"][0]] == [0.0, 0.5]
    assert frame[["scores.window", "scores.tone (2)"]].isna().to_numpy().tolist() == [[False, True], [True, True]]
    assert list(frame["metadata.area"].isna()) == [False, True]
    assert (frame["input_tokens"].sum(), frame["reused"].sum()) == (5, 0)


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="needs pandas") as error:
        frame_of([], root="/repo")
    assert error.value.hint == "pip install pandas"


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e$x$ & \"'"


def test_text_of_models_and_files_is_never_markup():
    result = finished("failed", trial=trial(HOSTILE), output=HOSTILE, scores=[scored(False, text=HOSTILE)])
    page = render_table([result], [HOSTILE])
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    shown = {tag.split()[0] for tag in re.findall(r"</?([a-z][^>]*)>", page)}
    assert shown == {*("div", "p", "table", "thead", "tbody", "tr", "th", "td")}


def test_a_bounded_number_of_trials_those_that_failed_first():
    passed = [finished(trial=trial(f"good-{number}"), output="x" * 10_000) for number in range(SHOWN + 5)]
    page = render_table([*passed, finished("failed", trial=trial("bad"))], ["totals"])
    assert page.count("<tr>") == SHOWN + 1
    assert page.index("bad") < page.index("good-0")
    assert "… and 6 more" in page
    assert "x" * (LONGEST + 1) not in page
    assert "<table" not in render_table([], ["totals"])


def rendered(view=None):
    text = json.dumps(run_data(view or run_view(), SUMMARY, **LOOKS))
    assert text.isascii()
    return json.loads(text)


def test_what_did_not_pass_is_listed():
    shown = rendered()
    assert [(one["test_id"], one["status"]) for one in shown["not_passed"]] == [
        ("window-closed", "failed"),
        ("hostile\x1b[2J", "failed"),
        ("gate", "failed"),
        ("silent", "failed"),
        ("slow", "errored"),
        ("broken", "errored"),
    ]
    assert shown["omitted"] == 0
    first = shown["not_passed"][0]
    found = (first["eval_path"], first["line"], first["target"], first["sample"])
    assert found == ("evals/refund.eval.yaml", 12, "gpt", 1)
    assert (first["score"], first["threshold"], first["output"], first["error"]) == (0.4, 0.8, "No.", None)
    assert first["findings"][0] == {
        "state": "failed",
        "name": "contains: '30 days'",
        "type": "contains",
        "required": False,
        "text": "contains '30 days'",
        "evidence": "No. You cannot return it after that.",
        "source": "evals/refund.eval.yaml:14",
    }


def test_an_errored_trial_says_why():
    slow = rendered()["not_passed"][4]
    assert slow["error"] == {"code": "timeout", "message": "no answer after 3 s", "retryable": True}
    assert slow["score"] is None
