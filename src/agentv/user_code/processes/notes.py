"""Notes from a process to its supervisor besides the verdict, and messages when there is no verdict.

A note is a line: its kind, and a text in hex. Anybody who can write into the pipe can make one: no verdict hangs on it.
"""

from __future__ import annotations

BEGUN = b"begun "
"""The command line that resumes the run."""

REASON = b"ended "
"""Why the process ends without a verdict."""

GO_ON = "finished trials are saved. Resume with:"

SHOW_CURSOR = "\x1b[?25h"
"""What a bar of progress does when it ends; this one did not."""

CLOSED = "user code closed file descriptors that it did not open"

CANNOT_SAY = 117
"""Exit status of a process whose descriptors were closed: also the one by which it would tell of it."""
