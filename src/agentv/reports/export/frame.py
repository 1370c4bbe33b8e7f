"""A run as a DataFrame of pandas: one row per trial."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentv.errors import UsageError
from agentv.model.run.trial import TrialResult
from agentv.model.values.retrieved import context_json
from agentv.model.values.values import Json
from agentv.reports.export.csv_rows import COLUMNS, needs_of, passes_of, scores_of

if TYPE_CHECKING:
    import pandas as pd

_FLOATS = frozenset(
    {"score", "threshold", "duration_ms", "cost_usd", "judge_cost_usd", "user_cost_usd", "time_to_first_token_ms"}
)
_COUNTS = frozenset({"sample", "attempts", "input_tokens", "output_tokens"})
_OWN: Mapping[str, Callable[[TrialResult], object]] = {
    "reused": lambda result: result.reused,
    "tags": lambda result: list(result.trial.case.tags),
    "context": lambda result: context_json(result.context),
}
"""Columns of a CSV export whose cells are better values than texts."""

_LARGEST = 2**63
"""Whole numbers from here on do not fit into 64 bits."""

_SPREAD = ("scores", "passes", "needs", "metadata")
"""Columns of a CSV export that have a column for each of their keys here."""


def frame_of(results: Sequence[TrialResult], *, root: str) -> pd.DataFrame:
    """The trials in their order. What is not known is missing; without a trial there are the columns alone.

    Args:
        results: the trials.
        root: directory from which paths are shown.

    Raises:
        UsageError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("to_pandas() needs pandas, which is not installed", "pip install pandas") from None
    columns = {
        name: _typed(name, [_cell(name, one, root) for one in results]) for name in COLUMNS if name not in _SPREAD
    }
    columns |= _spread("scores", [scores_of(one) for one in results], dtype="float64")
    columns |= _spread("passes", [passes_of(one) for one in results], dtype="boolean")
    columns |= _spread("needs", [needs_of(one) for one in results], dtype="float64")
    columns |= _spread("vars", [one.trial.case.vars for one in results])
    columns |= _spread("metadata", [one.metadata for one in results])
    return pd.DataFrame(columns, index=pd.RangeIndex(len(results)))


def _cell(name: str, result: TrialResult, root: str) -> object:
    own = _OWN.get(name)
    return own(result) if own is not None else COLUMNS[name](result, root)


def _typed(name: str, cells: list[object]) -> pd.Series[Any]:
    import pandas as pd

    if name == "timestamp":
        return pd.Series(pd.to_datetime(pd.Series(cells, dtype="string"), utc=True, format="ISO8601"))
    if name in ("tags", "context"):
        return pd.Series(cells, dtype="object")
    if name == "reused":
        return pd.Series(cells, dtype="bool")
    return pd.Series(cells, dtype="float64" if name in _FLOATS else "Int64" if name in _COUNTS else "string")


def _spread(prefix: str, rows: Sequence[Mapping[str, Json]], dtype: str | None = None) -> dict[str, pd.Series[Any]]:
    """A column for each key that some row has, in the order in which they appear."""
    import pandas as pd

    found: dict[str, pd.Series[Any]] = {}
    for key in dict.fromkeys(key for row in rows for key in row):
        cells = [row.get(key) for row in rows]
        found[f"{prefix}.{key}"] = pd.Series(cells, dtype=dtype or _type_of(cells))
    return found


def _type_of(cells: Sequence[Json]) -> str:
    """The type of a column that all values have, with room for missing ones; `object` where they differ."""
    kinds = {type(one) for one in cells if one is not None}
    if kinds == {int} and all(one is None or abs(one) < _LARGEST for one in cells):  # type: ignore[arg-type]  # numbers
        return "Int64"
    known: dict[frozenset[type], str] = {
        frozenset({bool}): "boolean",
        frozenset({float}): "Float64",
        frozenset({int, float}): "Float64",
        frozenset({str}): "string",
    }
    return known.get(frozenset(kinds), "object")
