"""`agentv lsp`."""

from __future__ import annotations

import sys

import click

from agentv.errors import ExitStatus, UsageError
from agentv.registry.fields import missing_extra


@click.command("lsp", epilog="Example: agentv lsp")
@click.option("--stdio", is_flag=True, help="Communicate on stdin and stdout. This is the default.")
def command(*, stdio: bool) -> int:  # noqa: ARG001  # many editors pass it to every language server
    """Start the language server, which editors use to check and complete eval files.

    Communicates with the editor on stdin and stdout (Language Server Protocol). Reports mistakes while you type,
    completes keys, assertion types and names, explains them, and finds where names are defined. Never runs code of the
    project and makes no connections.

    docs/how-to/use-in-an-editor.md has the settings for VS Code, Neovim, Helix and Zed.
    """
    missing = missing_extra("pygls", "lsp", "agentv lsp")
    if missing is not None:
        raise UsageError(missing.message, missing.hint)
    if sys.stdin is not None and sys.stdin.isatty():
        hint = "docs/how-to/use-in-an-editor.md has the settings; to check files here: agentv validate"
        raise UsageError("an editor starts this command and communicates with it on stdin", hint)
    from agentv.extensions.editor.server import serve

    serve()
    return ExitStatus.PASSED
