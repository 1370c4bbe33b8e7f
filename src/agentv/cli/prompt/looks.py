"""Width and colours of the output on stdout."""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size

PIPED = 200
"""Columns without a terminal."""


def width_and_color() -> tuple[int, bool]:
    """Columns of the terminal that stdout is, and whether it is painted; wide and plain where it is none."""
    watched = sys.stdout.isatty()
    width = get_terminal_size().columns if watched else PIPED
    return width, watched and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
