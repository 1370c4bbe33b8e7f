"""Values that shells complete arguments with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files and directories, which the shell completes itself."""
    del ctx, param
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """`last` and the names of the newest runs of this repository; without one, directories."""
    del ctx, param
    from click.shell_completion import CompletionItem

    from agentv.app.results.listing import listed_runs
    from agentv.reports.commands.runs import run_words

    names = {"last": "the newest run"} | {Path(run.directory).name: run_words(run) for run in listed_runs(50).runs}
    found = [CompletionItem(name, help=words) for name, words in names.items() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="dir")]


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The codes of diagnostics."""
    del ctx, param
    from click.shell_completion import CompletionItem

    from agentv.codes import CODES

    return [CompletionItem(code, help=CODES[code]) for code in sorted(CODES) if code.startswith(incomplete)]
