"""Options of `agentv view`: whether answers may be labelled, and by whom."""

from __future__ import annotations

import click

from agentv.errors import UsageError

LABEL = click.Option(["--label"], is_flag=True, is_eager=True, help="Allow answers to be labelled.")


def _person(context: click.Context, _: click.Parameter, given: str | None) -> str:
    """Who labels; empty: nobody may."""
    if not context.params[LABEL.name or ""]:
        if given is not None:
            raise UsageError("--by needs --label", "use both, to label as somebody else than your login name")
        return ""
    from agentv.extensions.labels.labelling import login_name

    return (given or "").strip() or login_name()


BY = click.Option(
    ["--by"], metavar="NAME", callback=_person, help="With --label: who labels (default: your login name)."
)
