"""Reports of plugins: what comes of one that goes wrong half way."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from agentv.app.plugins.reports import render_report
from agentv.errors import UsageError
from agentv.registry.plugins import PluginCode
from agentv.registry.types import ReportFormat, RunData

RUN = RunData("run", {"run_id": "run"}, {"schema_version": 1}, iter(()))
ROWS = [{"test_id": "a"}, {"test_id": "b"}]


def text_of(render) -> str:
    report = ReportFormat("tap", render, PluginCode("report format 'tap' of acme-evals 1.2", "acme-evals 1.2", "x"))
    return "".join(render_report(report, replace(RUN, rows=iter(ROWS))))


def in_pieces(run) -> Iterable[str]:
    return (f"{row['test_id']}\n" for row in run.rows)


def test_text_comes_whole_or_in_pieces():
    assert text_of(in_pieces) == "a\nb\n"
    assert text_of(lambda run: "".join(in_pieces(run))) == "a\nb\n"
    assert text_of(lambda run: list(in_pieces(run))) == "a\nb\n"
    assert text_of(lambda run: "") == ""
    assert text_of(lambda run: f"{run.run_id} {run.record['run_id']} {run.summary['schema_version']}") == "run run 1"


def later(run):
    yield "a"
    raise ValueError("no")


@pytest.mark.parametrize(
    ("render", "why"),
    [
        (lambda run: 1 / 0, "raised ZeroDivisionError"),
        (lambda run: None, "raised TypeError"),
        (lambda run: b"bytes", "must give text, and gave int"),
        (lambda run: [None, "a"], "must give text, and gave NoneType"),
        (lambda run: ["a", 3], "must give text, and gave int"),
        (later, "raised ValueError: no (test_reports.py:"),
    ],
)
def test_what_is_no_text_names_the_plugin(render, why):
    with pytest.raises(UsageError, match=r"\[bad-plugin\] report format 'tap' of acme-evals 1.2") as raised:
        text_of(render)
    assert why in str(raised.value)
