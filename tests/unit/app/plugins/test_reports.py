"""Reports of plugins: what comes of one that goes wrong half way."""

from __future__ import annotations

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
