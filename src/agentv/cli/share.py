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
        if not isinstance(value, str) or not value.strip().endswith("%"):
            return float(super().convert(value, param, ctx))
        percent = float(click.FLOAT.convert(value.strip()[:-1], param, ctx))
        return float(super().convert(percent / 100, param, ctx))
