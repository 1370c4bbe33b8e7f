"""`agentv prompt check`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.formats import chosen_format, format_options
from agentv.model.exam import PromptStatus


@click.command("check", epilog="Example: agentv prompt check --require ready --format github")
@click.option("--require", type=click.Choice(("tested", "ready")), help="Every prompt has come so far, or further.")
@format_options("What is wrong as JSON on stdout; the same as --format json.")
def command(*, require: PromptStatus | None, **formats: Any) -> int:
    """The gate for CI: the whole library has nothing that doctor finds, and no status without its evidence.

    Nothing is called. Exit status 1 if anything is wrong.
    """
    from agentv.app.prompts.examining import below, findings
    from agentv.app.prompts.library import Library
    from agentv.cli.prompt.doctor import tell

    form = chosen_format(formats["format_name"], as_json=formats["as_json"])
    library = Library.here()
    prompts = library.all()
    found = list(findings(prompts, library))
    if require is not None:
        found += below(prompts, require)
    return tell(found, len(prompts), form)
