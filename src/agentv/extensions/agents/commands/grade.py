"""`agentv grade`."""

from __future__ import annotations

from typing import Any

import click

from agentv.app.settings import EvalSettings
from agentv.cli.completion.values import files
from agentv.cli.options.expected import Choice
from agentv.cli.options.formats import chosen_format, format_options
from agentv.cli.running.progress import ProgressOptions, follow


@click.command("grade", epilog="Example: agentv grade fix.eval.yaml --test-id negative --prepared negative")
@click.argument("path", metavar="FILE", shell_complete=files)
@click.option("--test-id", required=True, metavar="ID", help="Case to grade.")
@click.option("--prepared", required=True, metavar="DIR", help="Directory that `agentv prepare` made.")
@click.option("--response", metavar="FILE", help="File with the answer. Default: the last message of --trace.")
@click.option("--trace", metavar="FILE", help="Trace of the work.")
@click.option("--judge", metavar="TARGET", help="Model that grades rubrics.")
@click.option("-o", "--out", metavar="DIR", help="Results directory.")
@click.option("--sandbox", type=Choice(("none", "bwrap", "docker")), help="What confines commands to the workspace.")
@format_options("Print the results to stdout as one JSON object. Same as --format json.")
def command(path: str, test_id: str, prepared: str, response: str | None, trace: str | None, **options: Any) -> int:
    """Grade work that a person or another program did in a prepared directory.

    The workspace is compared with a new one, so that nothing in DIR but the work itself decides. Without an answer,
    assertions on the answer are errored; those on files, changes and commands are graded.

    Exit status: as of `agentv eval`.
    """
    from agentv.extensions.agents.without_agent.prepared_work import GradeRequest, work_to_grade

    form = chosen_format(options.pop("format_name"), as_json=options.pop("as_json"))
    settings = EvalSettings(paths=(path,), **options)
    settings = work_to_grade(settings, GradeRequest(prepared, test_id, response, trace))
    return follow(settings, ProgressOptions(form, quiet=False, verbose=False, no_progress=True))
