"""Output of promotions and demotions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from agentv.model.suite.library import Promotion


def tell(done: Sequence[Promotion], *, as_json: bool) -> None:
    """Say it on stderr, or as JSON on stdout."""
    here = str(Path.cwd())
    if as_json:
        from agentv.reports.commands.promotions import promotions_json

        click.echo(promotions_json(done, here=here))
        return
    for line in _lines(done, here):
        click.echo(line, err=True)


def _lines(done: Iterable[Promotion], here: str) -> Iterable[str]:
    from agentv.reports.commands.promotions import promotion_lines

    for one in done:
        yield from promotion_lines(one, here=here)
