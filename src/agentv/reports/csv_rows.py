"""A run as a table for spreadsheets: one line a trial, in the CSV of RFC 4180."""

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
"""How a text begins that a spreadsheet may run, in full width too; a tab or an end of line may hide what comes first.

Source: OWASP, "CSV Injection".
"""

_INSIDE = re.compile(r"[;|\t\r\n][ \xa0\"']*(?=[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\s))")
"""Where a cell may begin for a program that takes another separator: it minds neither our commas nor our quotes."""

_GUARDED_INSIDE = re.compile(r"([;|\t\r\n][ \xa0\"']*)'(?=[=@\uff1d\uff20]|[+\-\uff0b\uff0d](?!\s))")

_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters but tabs and ends of lines: a reader of CSV may stop at one, a terminal obey one."""

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def render_csv(
    results: Iterable[TrialResult], variables: Sequence[str] = (), *, root: str, ratings: Ratings = MappingProxyType({})
) -> Iterator[str]:
    """A line with the names of the columns, then a line for every trial. Nothing is held in memory.

    Every cell is quoted. Text that a spreadsheet would run gets a `'` in front, which says that it is text, also where
    only one that splits lines at another separator would see a cell. Numbers are plain, durations milliseconds, costs
    US dollars; what is not known is empty.

    Args:
        results: in the order of the lines.
        variables: names of variables, each a column `vars.NAME`.
        root: absolute path of the repository, from which paths are shown.
        ratings: what people think of answers; without any there are no columns for it.
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
    """How many people think well of an answer, how many do not, and a line for each comment."""
    output = result.output
    key = (result.trial.suite.name, result.trial.case.id, "" if output is None else answer_sha256(output))
    given = ratings.get(key, ())
    up, down = (sum(one.verdict == verdict for one in given) for verdict in ("pass", "fail"))
    return [up, down, "\n".join(f"{one.person}: {one.note}" for one in given if one.note)]


class _Line:
    """Takes one line of a `csv.writer`."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def guarded(cell: Cell) -> Cell:
    """The cell, not to be run by a spreadsheet."""
    if not isinstance(cell, str):
        return cell
    text = _NO_TEXT.sub("\ufffd", cell)
    inside = _INSIDE.sub(r"\g<0>'", text)
    return f"'{inside}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(text) else inside


def unguarded(text: str) -> str:
    """The text before `guarded`, if it can be restored."""
    inside = _GUARDED_INSIDE.sub(r"\1", text)
    return next((one for one in (inside.removeprefix("'"), inside) if guarded(one) == text), text)


def _failed_checks(result: TrialResult) -> str:
    """A line for each check that did not pass, and for each assertion that could not judge."""
    kind: Kind = "failed" if result.status == "failed" else "noted"
    return "\n".join(check(finding) for finding in trial_view(kind, result).findings)


def scores_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion → its score, null where it errored."""
    return _of_grades(result, lambda grade: grade.score)


def passes_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion → whether it passed, null where it errored."""
    return _of_grades(result, lambda grade: grade.passed)


def needs_of(result: TrialResult) -> dict[str, Json]:
    """The name of each assertion that has a threshold → the score at which it passes."""
    found = _of_grades(result, lambda grade: grade.needs)
    return {name: needs for name, needs in found.items() if needs is not None}


def _of_grades(result: TrialResult, read: Callable[[Grade], Json]) -> dict[str, Json]:
    """Names have a number where another assertion has the same."""
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
    """A line for each assertion that says why, such as a judge."""
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
    """JSON; empty if there is nothing in it."""
    return _json(value) if value else ""


def _of_work(name: str) -> Callable[[TrialResult, str], Cell]:
    """The column of a fact of an agent's work."""
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
    **{name: _of_work(name) for name in ("sandbox", "agent_version", "trace_path", "diff_path")},
    "finish_reason": lambda result, _: result.finish_reason,
    "note": lambda result, _: cut_words(result),
    "passes": lambda result, _: _filled(passes_of(result)),
    "needs": lambda result, _: _filled(needs_of(result)),
    "context": lambda result, _: _filled(context_json(result.context)),
    "time_to_first_token_ms": lambda result, _: result.time_to_first_token_ms,
}
"""The columns in their order, and what stands in them; the second argument is the root that paths are shown from.

A key that rows gain is added at the end, before the columns of variables: whoever counts columns must not miscount.
"""
