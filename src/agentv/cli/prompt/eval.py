"""`agentv prompt eval`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.eval import BESIDE
from agentv.cli.eval import command as eval_command

TAKEN = frozenset(
    {
        "targets",
        "judge",
        "outs",
        "filters",
        "last_failed",
        "tags",
        "exclude_tags",
        "env_file",
        "workers",
        "repeat",
        "timeout_s",
        "max_errors",
        "budget_usd",
        "budget_tokens",
        "resume",
        "lists",
        "format_name",
        "as_json",
        "quiet",
        "verbose",
        "no_progress",
        "strict",
    }
)
"""Options of `agentv eval`. The others change what a case asks, or how it is judged: that would be another exam."""


@click.command("eval", epilog="Example: agentv prompt eval diff-surgeon --filter 'small-*'")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Run the exam of every prompt in the library.")
def command(names: tuple[str, ...], *, everything: bool, **options: Any) -> int:
    """Run the exams of prompts and record every attempt in the prompt's .eval.jsonl.

    ID is the id of a prompt, or a path to its directory or its exam. An attempt that runs only part of an exam, or uses
    another model than the exam names, is not evidence for a promotion.

    Exit status: 0 all cases passed; 1 a case failed; 2 a file or the command is wrong and nothing ran; 3 a trial
    errored or did not run; 130 interrupted.
    """
    from agentv.app.prompts.exam_paths import exams_of
    from agentv.cli.eval import run
    from agentv.reports.text.escaping import one_line

    chosen = exams_of(names, everything=everything)
    for prompt in chosen.without:
        click.echo(f"note: {one_line(prompt)} has no exam and is skipped", err=True)
    return run(chosen.paths, options, promotes=True)


command.params += [one for one in eval_command.params if one.name in TAKEN | BESIDE]
