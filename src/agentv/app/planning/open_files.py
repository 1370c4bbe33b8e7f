"""Limit on concurrent trials from the number of files that the process may open."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from contextlib import suppress

from agentv.model.suite.suite import TargetSpec

PER_CALL = 3
"""Open files of a trial that asks a server: one connection to its target, one to its judge, one to spare."""

PER_PROGRAM = 8
"""Open files of a trial that starts a program: its pipes, both ends while it is started."""

RESERVE = 128
"""Open files of everything else: the run's own, modules that are being imported, what users' code opens."""

_HIGHEST = 10_240
"""What macOS grants at most where it says that there is no limit (OPEN_MAX)."""


def workers_within(workers: int, targets: Iterable[TargetSpec]) -> tuple[int, str | None]:
    """The number of workers that the limit on open files allows after raising it, and a note about it.

    Args:
        workers: requested number.
        targets: that they call.
    """
    programs = any(getattr(spec.settings, "calls", "program") == "program" for spec in targets)
    each = PER_PROGRAM if programs else PER_CALL
    allowed = _raised(workers * each + RESERVE)
    fitting = max(1, (allowed - RESERVE) // each)
    if fitting >= workers:
        return workers, None
    return (
        fitting,
        f"{workers:,} workers need more than the {allowed:,} open files allowed here; using {fitting:,} workers",
    )


def _raised(needed: int) -> int:
    """The limit of open files of this process, raised to what is needed where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft in (unlimited, needed) or soft > needed:
        return max(soft, needed)
    with suppress(ValueError, OSError):
        wanted = min(needed, _HIGHEST if hard == unlimited else hard)
        if wanted > soft:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
