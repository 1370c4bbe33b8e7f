"""`agentv prompt eval`: `agentv eval` of the exams of prompts, named by their ids."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.eval import command as eval_command


@click.command("eval", epilog="Example: agentv prompt eval diff-surgeon --filter 'small-*'")
@click.argument("names", nargs=-1, metavar="[ID]...")
@click.option("--all", "everything", is_flag=True, help="Run the exam of every prompt in the library.")
def command(names: tuple[str, ...], *, everything: bool, **options: Any) -> int:
    """Run the exams of prompts and record every attempt in the prompt's .eval.jsonl.

    ID is the id of a prompt, or a path to its directory or its exam: `agentv prompt eval ID` is `agentv eval
    prompts/ID/eval.yml`. An attempt that runs only part of an exam, or with other settings than the exam's, is marked
    partial and is not evidence for a promotion.

    Exit status: 0 all cases passed; 1 a case failed; 2 a file or the command is wrong and nothing ran; 3 a trial
    errored or did not run; 130 interrupted.
    """
    from agentv.app.prompts.library import exams_of
    from agentv.cli.eval import run
    from agentv.reports.text.escaping import one_line

    chosen = exams_of(names, everything=everything)
    for prompt in chosen.without:
        click.echo(f"note: {one_line(prompt)} has no exam and is skipped", err=True)
    return run(chosen.paths, options)


command.params += [one for one in eval_command.params if isinstance(one, click.Option)]
