"""`agentv prompt render`."""

from __future__ import annotations

import json

import click

from agentv.errors import ExitStatus


@click.command("render", epilog="Example: agentv prompt render diff-surgeon --case small-file-happy-path")
@click.argument("name", metavar="ID")
@click.option("--case", "case_id", metavar="NAME", help="Case to render. Required if the exam has several.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to stdout: the messages with their roles.")
def command(name: str, *, case_id: str | None, as_json: bool) -> int:
    """Print what the model would see for a case. Makes no calls.

    Prints the text of a single user message, or several messages labelled with their roles.
    """
    from agentv.app.prompts.examining import Examiner
    from agentv.app.prompts.library import Library
    from agentv.app.prompts.showing import render
    from agentv.model.values.message import prompt_text
    from agentv.reports.text.escaping import safe

    library = Library.here()
    rendered = render(library.one(name), case_id, Examiner(library))
    if as_json:
        messages = [message.as_json() for message in rendered.messages]
        document = {"prompt": rendered.prompt, "case": rendered.case, "messages": messages}
        click.echo(json.dumps(document, indent=2))
    else:
        text = prompt_text(rendered.messages)
        import sys

        click.echo(safe(text) if sys.stdout.isatty() else text)
    return ExitStatus.PASSED
