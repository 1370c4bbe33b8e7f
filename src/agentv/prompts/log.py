"""A prompt's log: `.eval.jsonl`, one row per exam, append-only (SPEC section 11).

A row is one line, handed to the system in one call under a lock, behind what stands there. What a crash left of a line
is set aside by the next append, and passed over by readers until then.
"""

from __future__ import annotations

from agentv.prompts.appending import TORN, append
from agentv.prompts.reading import LOG, Log, LogFault, last_sitting, log_diagnostics, log_path, read_log

__all__ = [
    "LOG",
    "TORN",
    "Log",
    "LogFault",
    "append",
    "last_sitting",
    "log_diagnostics",
    "log_path",
    "read_log",
]
