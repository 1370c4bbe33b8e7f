"""Options that take a share, such as 0.05, or 5%."""

from __future__ import annotations

from typing import Any

import click


class Share(click.FloatRange):
    """A number between 0 and 1, written as such or in percent."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share.

        Raises:
            click.BadParameter: it is no number, or out of range.
        """
        of_one: Any = value
        if isinstance(value, str) and value.strip().endswith("%"):
            percent: Any = value.strip()[:-1]
            of_one = click.FLOAT.convert(percent, param, ctx) / 100
        return float(super().convert(of_one, param, ctx))

    def _describe_range(self) -> str:
        """The range in the help; empty without bounds, of which click makes `x<=None`."""
        return "" if self.min is None and self.max is None else super()._describe_range()
