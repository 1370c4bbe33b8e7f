"""`agentv prompt …`, which is also `eva …`: a library of prompts, their exams, and the gates (SPEC section 11)."""

from __future__ import annotations

import click

from agentv.cli.lazy import LazyCommands

COMMANDS = {
    "list": "agentv.cli.prompt.library:list_command",
    "show": "agentv.cli.prompt.library:show_command",
    "init": "agentv.cli.prompt.library:init_command",
    "eval": "agentv.cli.prompt.eval:command",
    "render": "agentv.cli.prompt.library:render_command",
    "diff": "agentv.cli.prompt.library:diff_command",
    "doctor": "agentv.cli.prompt.library:doctor_command",
    "check": "agentv.cli.prompt.library:check_command",
    "promote": "agentv.cli.prompt.promotions:promote_command",
    "demote": "agentv.cli.prompt.promotions:demote_command",
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
