"""Users' coroutines: all on one event loop of their own, for as long as it responds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from agentv.user_code.functions.deadline import LIMIT, LONGEST_S, Deadline
from agentv.user_code.functions.loop_queue import LoopQueue
from agentv.user_code.functions.user_loop import UserLoop

T = TypeVar("T")

CLEAN_UP_S = 0.5
"""Seconds that users' coroutines get at the end of a run to close what they have open."""


class UserLoops:
    """Runs users' coroutines away from our own loop.

    All share one loop, since sessions, locks and queues that a module keeps between calls belong to the loop that
    they were made on. A loop that one of the calls blocks cannot be helped, but the others can:

    - A call that has waited a quarter of its time limit to begin (`Deadline.patience_s`) begins on a further loop,
      and so do those that come after it.
    - A call that has begun is never begun again, since it may cost money: it goes on when its loop comes free, or
      is late.
    - The first loop that responds is the one in use: a blocked one that comes free is taken again.

    All methods are called on the loop of whoever awaits the calls.
    """

    def __init__(self) -> None:
        self._loops: list[UserLoop] = []
        self._calls: set[_Call] = set()
        self._replies: LoopQueue | None = None

    def call(self, function: Callable[[], Coroutine[Any, Any, T]]) -> Awaitable[T]:
        """Start a coroutine on the users' loop; awaiting the result gives its value.

        Cancelled, it does not wait for the coroutine to take notice. Context variables are those of the caller; the
        time limit is that of whoever awaits.

        Args:
            function: makes the coroutine; called on that loop, at most once.

        Raises:
            BaseException: what the coroutine raised; CancelledError also where it cancelled itself.
        """
        call = _Call(function, self._replies_here(), self._settle)
        self._calls.add(call)
        self._place(call)
        return _Value(self._value_of, call)

    async def _value_of(self, call: _Call) -> Any:
        call.limit = LIMIT.get()
        if call in self._calls:
            self._check_again(call, call.patience_s)
        try:
            return await call.outcome
        except asyncio.CancelledError:
            if call in self._calls:  # it has not ended: who waits for it has given up
                self._give_up(call)
            raise

    def close(self) -> None:
        """Cancel everything on the loops and let them end; blocked loops end with the process."""
        self._close(lambda: None)

    async def aclose(self) -> None:
        """Close as `close` does, and wait up to `CLEAN_UP_S` seconds for cancelled coroutines to clean up."""
        left = sum(not loop.held_up for loop in self._loops)
        ended = asyncio.Event()

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                ended.set()

        self._close(partial(LoopQueue(asyncio.get_running_loop()).post, count))
        if left:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLEAN_UP_S):
                    await ended.wait()

    def _close(self, on_closed: Callable[[], object]) -> None:
        for call in self._calls:
            call.unwatch()
        for loop in self._loops:
            loop.close((lambda: None) if loop.held_up else on_closed)
        self._loops.clear()

    def _replies_here(self) -> LoopQueue:
        here = asyncio.get_running_loop()
        if self._replies is None or self._replies.loop is not here:
            self._replies = LoopQueue(here)
        return self._replies

    def _place(self, call: _Call) -> None:
        """Have a call begin on the first loop that responds."""
        home = next((loop for loop in self._loops if not loop.held_up), None)
        if home is None:
            home = UserLoop()
            self._loops.append(home)
        if call.settle_at(home):
            home.post(partial(call.start, home))

    def _settle(self, call: _Call, value: object, error: BaseException | None) -> None:
        """Pass on the result of a call, if it is still awaited."""
        self._calls.discard(call)
        call.unwatch()
        if call.outcome.done():
            return
        if isinstance(error, asyncio.CancelledError):
            call.outcome.cancel()
        elif error is not None:
            call.outcome.set_exception(error)
        else:
            call.outcome.set_result(value)

    def _give_up(self, call: _Call) -> None:
        home = call.home
        if home is None:
            return
        if call.limit is not None and home.blocked_s() >= call.patience_s:
            position = home.position()
            call.limit.reason = f"the event loop is blocked{f' ({position})' if position else ''}"
        if call.settle_at(None):  # it has not begun, and now never will
            self._calls.discard(call)
            call.unwatch()
        else:
            home.post(call.cancel)
            self._check_again(call, call.patience_s)

    def _check_again(self, call: _Call, after_s: float) -> None:
        call.unwatch()
        call.watch = call.replies.loop.call_later(after_s, self._check_waiting, call)

    def _check_waiting(self, call: _Call) -> None:
        """A call that has waited is either not begun, or was given up and has not ended: is its loop blocked?"""
        home = call.home
        if home is None or (call.begun and not call.outcome.done()):
            return
        if home.blocked_s() >= call.patience_s:
            self._leave(home)
        if not call.begun and call.home is not None:
            self._check_again(call, max(0.01, call.patience_s - call.home.blocked_s()))

    def _leave(self, blocked: UserLoop) -> None:
        """Move calls that have not started on a blocked loop to another loop."""
        blocked.hold_up()
        for call in tuple(self._calls):
            if call.home is blocked and not call.begun:
                self._place(call)


class _Value(Awaitable[T]):
    """What a call comes to; nothing is amiss where nobody asks for it."""

    def __init__(self, value_of: Callable[[_Call], Coroutine[Any, Any, T]], call: _Call) -> None:
        self._value_of = value_of
        self._call = call

    def __await__(self) -> Generator[Any, Any, T]:
        return self._value_of(self._call).__await__()


class _Call:
    """One call, from whoever awaits it to the loop that it runs on.

    Attributes:
        outcome: what is awaited, on the loop of `replies`.
        home: the loop on which it has begun or is to begin; None: it never will.
        begun: the user's code runs, or has run.
    """

    def __init__(
        self,
        function: Callable[[], Coroutine[Any, Any, Any]],
        replies: LoopQueue,
        settle: Callable[[_Call, object, BaseException | None], None],
    ) -> None:
        self._function = function
        self._settle = settle
        self._context = copy_context()
        self._task: asyncio.Task[Any] | None = None
        self._claim = Lock()  # that it begins, and that it is to begin elsewhere, exclude each other
        self.replies = replies
        self.outcome: asyncio.Future[Any] = replies.loop.create_future()
        self.limit: Deadline | None = None
        self.home: UserLoop | None = None
        self.begun = False
        self.watch: asyncio.TimerHandle | None = None

    @property
    def patience_s(self) -> float:
        """Seconds for which the call waits to begin before it begins elsewhere."""
        return LONGEST_S if self.limit is None else self.limit.patience_s

    def settle_at(self, home: UserLoop | None) -> bool:
        """Say where the call is to begin; false where it has begun already."""
        with self._claim:
            if not self.begun:
                self.home = home
            return not self.begun

    def start(self, home: UserLoop) -> None:
        """On the users' loop: make the task."""
        home.create_task(self._run(home), context=self._context)

    async def _run(self, home: UserLoop) -> None:
        """On the users' loop: begin, unless the call was taken elsewhere in the meantime."""
        with self._claim:
            if self.begun or self.home is not home:
                return
            self.begun, self._task = True, asyncio.current_task()
        home.moved()
        value, raised = None, None
        try:
            value = await self._function()
        except BaseException as error:  # noqa: BLE001  # nothing is swallowed: it is raised where it is awaited
            raised = error
        home.moved()
        # from in here, not when the task is done: the next turn of the loop may be long in coming
        self.replies.post(partial(self._settle, self, value, raised))

    def cancel(self) -> None:
        """On the user loop: cancel a coroutine that is no longer awaited."""
        if self._task is not None:
            self._task.cancel()

    def unwatch(self) -> None:
        """Look no more whether it is held up."""
        if self.watch is not None:
            self.watch.cancel()
