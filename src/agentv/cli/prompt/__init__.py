"""`agentv prompt …`, which is also `eva …`: a library of prompts, their exams, and the gates (SPEC section 11)."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "list": "agentv.cli.prompt.list:command",
    "show": "agentv.cli.prompt.show:command",
    "init": "agentv.cli.prompt.init:command",
    "eval": "agentv.cli.prompt.eval:command",
    "render": "agentv.cli.prompt.render:command",
    "diff": "agentv.cli.prompt.diff:command",
    "doctor": "agentv.cli.prompt.doctor:command",
    "check": "agentv.cli.prompt.check:command",
    "promote": "agentv.cli.prompt.promote:command",
    "demote": "agentv.cli.prompt.demote:command",
}


@click.group(
    "prompt",
    cls=LazyCommands,
    places=COMMANDS,
    epilog="Example: agentv prompt eval diff-surgeon",
)
def group() -> None:
    """Run exams of prompts, and promote prompts that pass: draft, tested, ready.

    A prompt is a directory below `prompts/` with `prompt.xml` (or .md, .txt), `meta.yaml` and an exam, `eval.yml`. `eva
    COMMAND` is short for `agentv prompt COMMAND`.
    """
