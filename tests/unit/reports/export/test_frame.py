"""A run as a DataFrame of pandas."""

from __future__ import annotations

import sys

import pytest

from agentv.errors import UsageError
from agentv.model.values.usage import TokenUsage
from agentv.reports.export.csv_rows import COLUMNS
from agentv.reports.export.frame import frame_of
from doubles.trials import errored_score, finished, graded, scored, trial
from needs import imported, needs

pytestmark = needs("pandas")
pd = imported("pandas")


def test_a_trial_is_a_row_with_types():
    scores = [scored(False, name="window"), graded(0.5, True, name="tone"), errored_score(name="tone")]
    first = finished(
        "failed",
        trial=trial("a", tags=("x", "y"), vars={"n": 1, "who": {"name": "Ada"}}),
        scores=scores,
        token_usage=TokenUsage(5, 6, 11),
        metadata={"area": "north"},
    )
    second = finished(trial=trial("b", vars={"n": 2, "half": 0.5}))
    frame = frame_of([first, second], root="/repo")
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
