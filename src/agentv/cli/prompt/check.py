"""`agentv prompt check`."""

from __future__ import annotations

from typing import Any

import click

from agentv.cli.lazy import Choice
from agentv.cli.options.formats import chosen_format, format_options
from agentv.model.suite.exam import PromptStatus


@click.command("check", epilog="Example: agentv prompt check --require ready --format github")
@click.option("--require", type=Choice(("tested", "ready")), help="Require every prompt to have at least this status.")
@format_options("Print findings to stdout as JSON. Same as --format json.")
def command(*, require: PromptStatus | None, **formats: Any) -> int:
    """Check the whole library in CI: fail if doctor has findings or a status lacks its evidence.

    Makes no calls. Exit status: 1 if anything is wrong.
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
