"""`agentv prompt doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from agentv.cli.options.formats import Format, chosen_format, format_options, print_as
from agentv.errors import Diagnostic, ExitStatus
from agentv.model.values.formatting import plural


@click.command("doctor", epilog="Example: agentv prompt doctor diff-surgeon")
@click.argument("names", nargs=-1, metavar="[ID]...")
@format_options("Print findings to stdout as JSON. Same as --format json.")
def command(names: tuple[str, ...], **formats: Any) -> int:
    """Check prompts and report every mistake with its position. Without an ID, check the whole library.

    Reads prompts, exams, inputs and logs; makes no calls. A comment `# agentv: ignore[CODE]` ignores a warning.

    Exit status: 1 if there are findings.
    """
    from agentv.app.prompts.examining import findings
    from agentv.app.prompts.library import Library

    form = chosen_format(formats["format_name"], as_json=formats["as_json"])
    library = Library.here()
    prompts = library.named(names) if names else library.all()
    return tell(list(findings(prompts, library)), len(prompts), form)


def tell(found: Sequence[Diagnostic], prompts: int, form: Format) -> int:
    """Print what was found; the exit status.

    Args:
        found: in any order.
        prompts: how many were looked at.
        form: how it is reported.
    """
    print_as(found, form)
    if form == "text" and not found:
        click.echo(f"{plural(prompts, 'prompt')}: no problems found", err=True)
    return ExitStatus.FAILED if found else ExitStatus.PASSED
