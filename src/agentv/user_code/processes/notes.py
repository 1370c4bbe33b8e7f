"""What is said where a process ends before its run has."""

from __future__ import annotations

GO_ON = "finished trials are saved. Resume with:"

SHOW_CURSOR = "\x1b[?25h"
"""What a bar of progress does when it ends; this one did not."""
