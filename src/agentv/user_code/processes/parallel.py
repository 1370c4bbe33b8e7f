"""Work that a single core would take too long for, divided among processes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from agentv.user_code.processes.command_process import ignore_signals
from agentv.user_code.processes.orphans import kill_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")

FEWEST = 50
"""Items that are worth a process: starting one takes as long as some of them."""

_CHUNKS = 4
"""For each process: fewer would let the others wait for the slowest, more would take the time of handing over."""


def mapped(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The results of some work on each item, in their order; on all cores where there are many items.

    The first is done here, so that what it loads and remembers is there when the process splits. Where processes cannot
    simply be split, as on macOS, in a program with threads, or where one was killed, all of it is done here.

    Args:
        work: what is called with each item.
        items: what can be pickled, as the results can.
    """
    processes = min(len(items) // FEWEST, _cores())
    done = 0
    if processes > 1 and sys.platform == "linux" and threading.active_count() == 1:
        yield work(items[0])
        done = 1
        for result in _in_processes(work, items[1:], processes):
            done += 1
            yield result
    yield from map(work, items[done:])


def _in_processes(work: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Iterator[Result]:
    """As many results as the processes gave before one was killed."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(processes, get_context("fork"), initializer=_begin, initargs=(work,))
    try:
        yield from pool.map(_do, items, chunksize=max(1, len(items) // (processes * _CHUNKS)))
    except BrokenProcessPool:
        return
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_given: list[Callable[[Any], Any]] = []
"""The work of this process, which it inherited: not all that can be called can be pickled."""


def _begin(work: Callable[[Any], Any]) -> None:
    """Ctrl-C reaches all processes of a terminal; the one that started the others ends them."""
    kill_with_parent()
    ignore_signals()
    _given.append(work)


def _do(item: Item) -> Any:
    return _given[0](item)


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
