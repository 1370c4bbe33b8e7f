"""`agentv prompt eval`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.eval import command as eval_command

TAKEN = frozenset(
    {
        "targets",
        "judge",
        "outs",
        "filter",
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
        "no_progress",
        "strict",
    }
)
"""Options of `agentv eval`. The others change what a case asks, or how it is judged: that would be another exam."""


@click.command("eval", epilog="Example: agentv prompt eval diff-surgeon --filter 'small-*'")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Every prompt of the library that has an exam.")
def command(names: tuple[str, ...], *, everything: bool, **options: Any) -> int:
    """Sit the exams of prompts, and put every sitting on record in the prompt's .eval.jsonl.

    ID is that of a prompt, or a path to its directory or its exam. A sitting of a part of an exam, or on another model
    than the exam names, counts as no evidence.

    Exit status as of `agentv eval`: 0 every case passed, 1 some failed, 2 something is wrong and nothing ran, 3 some
    errored or were not run, 130 interrupted.
    """
    from agentv.app.prompts.sitting import exams_of
    from agentv.cli.eval import run
    from agentv.reports.text import one_line

    chosen = exams_of(names, everything=everything)
    for prompt in chosen.without:
        click.echo(f"note: {one_line(prompt)} has no exam and is passed over", err=True)
    return run(chosen.paths, options, promotes=True)


command.params += [one for one in eval_command.params if one.name in TAKEN]
