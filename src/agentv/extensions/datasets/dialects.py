"""The dialects of samples and tasks, for `agentv convert`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from agentv.authoring.dialects.recognition import SampleDialect
from agentv.authoring.source.nodes import MapNode
from agentv.authoring.source.report import Report
from agentv.errors import ExitStatus, UsageError
from agentv.extensions.datasets.samples import DEEPEVAL, INSPECT, OPENAI_EVALS, TAU_BENCH, TITLES

if TYPE_CHECKING:
    from agentv.extensions.datasets.converting import ConvertedDataset


class Samples(SampleDialect):
    """The dialect of a tool's samples.

    Args:
        form: their format.
    """

    def __init__(self, form: str) -> None:
        self.title = TITLES[form]
        self._form = form

    def cases(self, path: str, report: Report) -> Sequence[MapNode] | None:
        """The cases of deepeval's conversational goldens, which say how they are graded; None for other samples."""
        from agentv.authoring.convert.records import Findings, first_record
        from agentv.extensions.datasets.cases import cases

        first, findings = first_record(path, Findings()), Findings()
        if self._form != DEEPEVAL or first is None or "scenario" not in first.items:
            return None
        made = list(cases(path, self._form, (), findings))
        for one in findings.diagnostics:
            report.add(one)
        return made

    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write the samples of a file as an eval file, and return the exit status."""
        from agentv.extensions.datasets.cases import CHECKS
        from agentv.extensions.datasets.converting import DatasetRequest, SampleFormat, from_dataset

        if options["to"] not in (None, "yaml", "jsonl"):
            raise UsageError(f"a dataset is converted to yaml or jsonl, not to {options['to']}")
        to: SampleFormat = "jsonl" if options["to"] == "jsonl" else "yaml"
        unknown = next((name for name in options["checks"] if name not in CHECKS), None)
        if unknown is not None:
            raise UsageError(f"--assert does not know '{unknown}'", f"choose from: {', '.join(CHECKS)}")
        request = DatasetRequest(source, self._form, options["checks"], to, options["out"], options["tools"])
        return _print(from_dataset(request, dict(os.environ)))


class Tasks(SampleDialect):
    """A dialect of tasks for agents.

    Args:
        form: their format.
        title: what a file contains, for messages.
        function: `package.module:function` of the function that converts them.
        reads_directories: whether a task is a directory.
    """

    def __init__(self, form: str, title: str, function: str, *, reads_directories: bool = False) -> None:
        self.title = title
        self.reads_directories = reads_directories
        self._form = form
        self._function = function

    def convert(self, source: Path, options: Mapping[str, Any]) -> int:
        """Write the tasks as an eval file, and return the exit status."""
        from agentv.extensions.datasets.converting import DatasetRequest

        if options["to"] not in (None, "yaml"):
            raise UsageError(f"{self.title} are converted to yaml, not to {options['to']}")
        request = DatasetRequest(source, self._form, (), "yaml", options["out"], command=options["test_command"])
        return _print(resolve_name(self._function)(request, dict(os.environ)))


def _print(done: ConvertedDataset) -> int:
    """Print the files, diagnostics and cases of a conversion, and return the exit status."""
    import click

    from agentv.cli.convert import print_written
    from agentv.cli.printing import print_diagnostics
    from agentv.model.values.formatting import plural
    from agentv.reports.text import one_line, safe

    print_diagnostics(done.omitted)
    for path in done.paths:
        print_written(path)
    click.echo(f"  {plural(done.count, 'case', ',')}, checked by {one_line(safe(done.checks))}", err=True)
    return ExitStatus.FAILED if done.omitted else ExitStatus.PASSED


OF_SWE_BENCH = Tasks("swe-bench", "rows of SWE-bench", "agentv.extensions.datasets.swe_bench:from_swe_bench")
OF_HARBOR = Tasks("harbor", "tasks of Harbor", "agentv.extensions.datasets.harbor:from_harbor", reads_directories=True)
OF_DEEPEVAL, OF_OPENAI_EVALS, OF_INSPECT = Samples(DEEPEVAL), Samples(OPENAI_EVALS), Samples(INSPECT)
OF_TAU_BENCH = Samples(TAU_BENCH)
