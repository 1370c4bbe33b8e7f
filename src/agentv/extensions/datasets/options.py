"""Options of `agentv convert` for samples and tasks."""

from __future__ import annotations

from pathlib import Path

import click

from agentv.cli.convert import DialectOption

ASSERT = DialectOption(
    "--assert",
    "checks",
    dialects=("deepeval", "openai-evals", "inspect"),
    files="datasets of deepeval, OpenAI evals and Inspect",
    multiple=True,
    metavar="TYPE",
    help="How to check the answers of a dataset, such as equals. Repeatable.",
)

TEST_COMMAND = DialectOption(
    "--test-command",
    dialects=("swe-bench",),
    files="rows of SWE-bench",
    metavar="COMMAND",
    help="Command that runs the tests of a row: the files {tests}, with the JUnit report {report}. Default: pytest.",
)

TOOLS = DialectOption(
    "--tools",
    "tools",
    dialects=("tau-bench",),
    files="tasks of tau-bench",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Python module whose functions are the tools of the tasks.",
)
