"""A run as CSV (RFC 4180) for spreadsheets, with one line per trial."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from agentv.model.run.grade import Grade
from agentv.model.run.labels import Ratings, answer_sha256
from agentv.model.run.trial import TrialResult
from agentv.model.values.message import prompt_text, reference_text
from agentv.model.values.retrieved import context_json
from agentv.model.values.usage import TokenUsage
from agentv.model.values.values import Json
from agentv.reports.run.trial_view import Kind, check, cut_words, trial_view
from agentv.reports.text import shown_from

Cell = str | float | None

_FORMULA = re.compile(r"[\s\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
"""Start of a text that a spreadsheet may run as a formula, also after white space and in full-width characters.

Source: OWASP, "CSV Injection".
"""

_INSIDE = re.compile(r"[;|\t\r\n][ \xa0\"']*(?=[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\s))")
"""Start of a formula for a program that splits lines at another separator, without regard to commas and quotes."""

_GUARDED_INSIDE = re.compile(r"([;|\t\r\n][ \xa0\"']*)'(?=[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\s))")

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters except tabs and line ends: a CSV reader may stop at one, and a terminal may act on one."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def render_csv(
    results: Iterable[TrialResult], variables: Sequence[str] = (), *, root: str, ratings: Ratings = MappingProxyType({})
) -> Iterator[str]:
    """A header line, then one line per trial, streamed.

    Every cell is quoted. Text that a spreadsheet would run as a formula is prefixed with `'`, which marks it as text.
    This includes positions where a cell begins only for a program that splits lines at another separator. Durations are
    in milliseconds, costs in US dollars; unknown values are empty.

    Args:
        results: trials in the order of the lines.
        variables: names of variables; each gets a column `vars.NAME`.
        root: absolute path of the repository, which paths are relative to.
        ratings: people's ratings of answers; if there are any, columns for them are added.
    """
    line = _Line()
    writer = csv.writer(line, quoting=csv.QUOTE_ALL)
    rated = _RATED if ratings else ()
    writer.writerow([*COLUMNS, *rated, *(guarded(f"vars.{name}") for name in variables)])
    yield line.text
    for result in results:
        cells = [cell(result, root) for cell in COLUMNS.values()]
        if rated:
            cells += _rated(result, ratings)
        given = result.trial.case.vars
        writer.writerow(map(guarded, [*cells, *(_variable(given.get(name)) for name in variables)]))
        yield line.text


_RATED = ("thumbs_up", "thumbs_down", "comments")


def _rated(result: TrialResult, ratings: Ratings) -> list[Cell]:
    """Numbers of positive and negative ratings of an answer, and a line for each comment."""
    output = result.output
    key = (result.trial.suite.name, result.trial.case.id, "" if output is None else answer_sha256(output))
    given = ratings.get(key, ())
    up, down = (sum(one.verdict == verdict for one in given) for verdict in ("pass", "fail"))
    return [up, down, "\n".join(f"{one.person}: {one.note}" for one in given if one.note)]


class _Line:
    """A file for a `csv.writer` that keeps only the latest line."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def guarded(cell: Cell) -> Cell:
    """The cell, escaped so that no spreadsheet runs it as a formula."""
    if not isinstance(cell, str):
        return cell
    text = _CONTROL.sub("\ufffd", cell)
    inside = _INSIDE.sub(r"\g<0>'", text)
    return f"'{inside}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(text) else inside


def unguarded(text: str) -> str:
    """The original of a text that `guarded` escaped, if it can be restored."""
    inside = _GUARDED_INSIDE.sub(r"\1", text)
    return next((one for one in (inside.removeprefix("'"), inside) if guarded(one) == text), text)


def _failed_checks(result: TrialResult) -> str:
    """A line for each check that did not pass and each assertion that errored."""
    kind: Kind = "failed" if result.status == "failed" else "noted"
    return "\n".join(check(finding) for finding in trial_view(kind, result).findings)


def scores_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion → its score, or None if it errored."""
    return _by_assertion(result, lambda grade: grade.score)


def passes_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion → whether it passed, or None if it errored."""
    return _by_assertion(result, lambda grade: grade.passed)


def needs_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion with a threshold → the score from which it passes."""
    found = _by_assertion(result, lambda grade: grade.needs)
    return {name: needs for name, needs in found.items() if needs is not None}


def _by_assertion(result: TrialResult, read: Callable[[Grade], Json]) -> dict[str, Json]:
    """A value for each assertion by name; repeated names are numbered."""
    found: dict[str, Json] = {}
    for score in result.scores:
        name, number = score.entry.name, 2
        while name in found:
            name, number = f"{score.entry.name} ({number})", number + 1
        found[name] = None if score.grade.error is not None else read(score.grade)
    return found


def _variable(value: Json) -> Cell:
    return value if value is None or isinstance(value, str) else _json(value)


def _reasons(result: TrialResult) -> str:
    """A line for each assertion that gives a reason, such as a judge."""
    reasons = ((score.entry.name, score.grade.reason) for score in result.scores if score.grade.error is None)
    return "\n".join(f"{name}: {reason}" for name, reason in reasons if reason)


def _usage(result: TrialResult) -> TokenUsage:
    return result.token_usage or TokenUsage()


def _path(result: TrialResult, root: str) -> str:
    path = result.trial.suite.path
    return shown_from(path, root) if path else ""


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _filled(value: dict[str, Json] | list[Json]) -> str:
    """JSON, or an empty string for an empty container."""
    return _json(value) if value else ""


def _stored_field(name: str) -> Callable[[TrialResult, str], Cell]:
    """Column for a field of an agent's stored work."""
    return lambda result, _: getattr(result.stored, name, None)


COLUMNS: Mapping[str, Callable[[TrialResult, str], Cell]] = {
    "test_id": lambda result, _: result.trial.case.id,
    "suite": lambda result, _: result.trial.suite.name,
    "eval_path": _path,
    "target": lambda result, _: result.trial.target.name,
    "prompt_id": lambda result, _: result.trial.case.prompt_id,
    "sample": lambda result, _: result.trial.sample,
    "status": lambda result, _: result.status,
    "score": lambda result, _: result.score,
    "threshold": lambda result, _: result.trial.threshold,
    "input": lambda result, _: prompt_text(result.input),
    "output": lambda result, _: result.output,
    "expected_output": lambda result, _: reference_text(result.trial.case.expected_output),
    "scores": lambda result, _: _filled(scores_of(result)),
    "failed_checks": lambda result, _: _failed_checks(result),
    "reasons": lambda result, _: _reasons(result),
    "error_code": lambda result, _: None if result.error is None else result.error.code,
    "error_message": lambda result, _: None if result.error is None else result.error.message,
    "duration_ms": lambda result, _: result.duration_ms,
    "attempts": lambda result, _: result.attempts,
    "input_tokens": lambda result, _: _usage(result).input,
    "output_tokens": lambda result, _: _usage(result).output,
    "cost_usd": lambda result, _: result.cost_usd,
    "judge_cost_usd": lambda result, _: result.judge_cost_usd,
    "user_cost_usd": lambda result, _: result.user_cost_usd,
    "user_done": lambda result, _: result.user_done,
    "reused": lambda result, _: "true" if result.reused else "",
    "tags": lambda result, _: ", ".join(result.trial.case.tags),
    "metadata": lambda result, _: _json(result.metadata) if result.metadata else "",
    "timestamp": lambda result, _: result.timestamp,
    "variant": lambda result, _: result.trial.variant_name,
    **{name: _stored_field(name) for name in ("sandbox", "agent_version", "trace_path", "diff_path")},
    "finish_reason": lambda result, _: result.finish_reason,
    "note": lambda result, _: cut_words(result),
    "passes": lambda result, _: _filled(passes_of(result)),
    "needs": lambda result, _: _filled(needs_of(result)),
    "context": lambda result, _: _filled(context_json(result.context)),
    "time_to_first_token_ms": lambda result, _: result.time_to_first_token_ms,
}
"""The columns in order, each with a function of the trial and the root that paths are relative to.

New columns are added at the end, before those of variables, so that the positions of existing columns do not change.
"""
