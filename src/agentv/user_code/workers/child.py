"""The program of a worker, which reads messages on one thread and runs users' code on others.

Plain functions run on the main thread, and on further threads while it is busy; each thread has an event loop set.
Coroutines share one loop on another thread, because a module's sessions and locks belong to the loop they were created
on.
"""

from __future__ import annotations

import atexit
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from inspect import iscoroutinefunction
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any

import msgspec

from agentv.model.values.response import Failure
from agentv.user_code.functions import load_function, newly_loaded
from agentv.user_code.guard import ForeignError, describe, foreign_code
from agentv.user_code.orphans import kill_with_parent
from agentv.user_code.workers.adapters import ask_parent, named
from agentv.user_code.workers.messages import (
    CLOSED_STATUS,
    LENGTH,
    Answer,
    Ask,
    Begin,
    Call,
    Cancel,
    Close,
    Failed,
    Ready,
    Request,
    Unsendable,
    UnsendableError,
    Value,
    Withdraw,
    Withdrawn,
    packed,
    plain,
    unpacker,
)

if TYPE_CHECKING:
    import asyncio

CLEAN_UP_S = 0.5
"""Seconds for coroutines to clean up after the end of the run."""

_RESPONDS_S = 0.05
"""Seconds within which an event loop responds unless it is blocked."""

Job = Callable[[], object]

Work = Callable[[], Job | None]
"""A job of a thread. It may return a function that sends its answer, which is called once the thread is idle again."""

current_call: ContextVar[int] = ContextVar("agentv_call")
"""Id of the call that the current task runs."""


class Channel:
    """Messages to and from the process that started this one."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._decoder = unpacker(Request)

    def receive(self) -> Request | None:
        """Return the next message, or None if the other process has ended."""
        length = self._exactly(LENGTH)
        body = length and self._exactly(int.from_bytes(length, "big"))
        return self._decoder.decode(body) if body else None

    def _exactly(self, size: int) -> bytes | bytearray:
        body = bytearray()
        while len(body) < size:
            try:
                more = self._connection.recv(min(size - len(body), 1 << 20))
            except OSError:
                os._exit(CLOSED_STATUS)
            if not more:
                return b""
            body += more
        return body

    def send(self, message: msgspec.Struct) -> None:
        """Send one message, from any thread."""
        body = packed(message)
        try:
            with self._lock:
                self._connection.sendall(body)
        except OSError as error:
            if error.errno in (errno.EBADF, errno.ENOTSOCK):
                os._exit(CLOSED_STATUS)
            # otherwise the other process has ended, and this one is about to


class Threads:
    """Threads for plain functions: the main one, and further ones while all are busy."""

    def __init__(self) -> None:
        self.main: SimpleQueue[Work | None] = SimpleQueue()
        self._idle = [self.main]
        self._lock = threading.Lock()

    def run(self, job: Work) -> None:
        """Run a job on an idle or new thread, preferably the main one."""
        with self._lock:
            if self.main in self._idle:
                jobs = self.main
                self._idle.remove(jobs)
            else:
                jobs = self._idle.pop() if self._idle else self._start()
        jobs.put(job)

    def _start(self) -> SimpleQueue[Work | None]:
        jobs: SimpleQueue[Work | None] = SimpleQueue()
        threading.Thread(target=self.serve, args=(jobs,), name="agentv-user-code", daemon=True).start()
        return jobs

    def serve(self, jobs: SimpleQueue[Work | None]) -> None:
        """Run jobs on this thread until None arrives. The main one gets an event loop only once asyncio is imported."""
        has_loop = False
        while (job := jobs.get()) is not None:
            if not has_loop and (jobs is not self.main or "asyncio" in sys.modules):
                import asyncio

                asyncio.set_event_loop(asyncio.new_event_loop())
                has_loop = True
            answer = job()
            with self._lock:
                self._idle.append(jobs)
            if answer is not None:
                answer()


class UserLoop:
    """The event loop for users' coroutines, started with the first of them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Schedule a coroutine on the loop, from any thread."""
        with self._lock:
            if self._loop is None:
                import asyncio

                self._loop = asyncio.new_event_loop()
                self._loop.set_exception_handler(lambda _loop, _context: None)
                self._thread = threading.Thread(target=self._serve, name="agentv-user-loop", daemon=True)
                self._thread.start()
        self._loop.call_soon_threadsafe(self._loop.create_task, coroutine)

    def _serve(self) -> None:
        import asyncio

        assert self._loop is not None  # noqa: S101  # set before the thread is started
        asyncio.set_event_loop(self._loop)
        while not self._loop.is_closed():
            with suppress(SystemExit, KeyboardInterrupt):  # raised by a task that user code started
                self._loop.run_forever()

    def blocked_at(self) -> str:
        """Return the line of user code that blocks the loop, or "" if the loop responds."""
        if self._loop is None:
            return ""
        responds = threading.Event()
        self._loop.call_soon_threadsafe(responds.set)
        if responds.wait(_RESPONDS_S):
            return ""
        frame = sys._current_frames().get(self._thread.ident or 0) if self._thread else None  # noqa: SLF001  # documented for cases such as this
        home = str(Path(sys.path[0]))
        while frame is not None and not frame.f_code.co_filename.startswith(home):
            frame = frame.f_back
        return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else ""

    def close(self) -> None:
        """Cancel all tasks, and give them a moment to clean up."""
        if self._loop is None:
            return
        import asyncio

        ended = threading.Event()

        async def wind_up() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left, timeout=CLEAN_UP_S)
            await asyncio.get_running_loop().shutdown_asyncgens()
            ended.set()

        asyncio.run_coroutine_threadsafe(wind_up(), self._loop)
        ended.wait(CLEAN_UP_S)


class Worker:
    """The calls of one worker."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.threads = Threads()
        self._loop = UserLoop()
        self._lock = threading.Lock()
        self._waiting: dict[int, Call] = {}  # calls that have not begun
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._known_async: set[tuple[str, str | None, str | None, str]] = set()
        self._loaded: dict[
            str | None, threading.Event
        ] = {}  # file or module → set once its first call has tried to load it
        self._asks: dict[int, Callable[[Answer], object]] = {}
        self._asked = 0

    def read(self) -> None:
        """Handle messages until the other process sends Close or ends."""
        while (message := self._channel.receive()) is not None:
            if isinstance(message, Call):
                self._take(message)
            elif isinstance(message, Cancel):
                self._cancel(message.id)
            elif isinstance(message, Withdraw):
                with self._lock:
                    ids = list(self._waiting)
                    self._waiting.clear()
                self._channel.send(Withdrawn(ids, self._loop.blocked_at()))
            elif isinstance(message, Answer):
                self._asks.pop(message.id)(message)
            elif isinstance(message, Close):
                self._loop.close()
                self.threads.main.put(None)
                return
        os.killpg(0, signal.SIGKILL)  # the parent process has ended: end this one and all its programs

    def _take(self, call: Call) -> None:
        key = (call.adapter, call.file, call.module, call.name)
        with self._lock:
            self._waiting[call.id] = call
        if key in self._known_async:
            self._loop.start(self._run_async(call))
        else:
            place = call.file or call.module
            loads = place not in self._loaded
            loaded = self._loaded.setdefault(place, threading.Event())
            self.threads.run(lambda: self._run(call, key, loaded, loads=loads))

    def _begin(self, call: Call) -> bool:
        with self._lock:
            return self._waiting.pop(call.id, None) is not None

    def _run(
        self,
        call: Call,
        key: tuple[str, str | None, str | None, str],
        loaded: threading.Event,
        *,
        loads: bool,
    ) -> Job | None:
        """Call a function on this thread, or leave it to the event loop if it is a coroutine function.

        The first call loads the module, on the main thread if that is idle, because some libraries can only be imported
        there.
        """
        if not loads:
            loaded.wait()
        try:
            with foreign_code(call.code, call.what):
                try:
                    made, is_async = _loaded(call)
                finally:
                    loaded.set()
                if is_async:
                    self._known_async.add(key)
                    return lambda: self._loop.start(self._run_async(call))
                if not self._begin(call):
                    return None
                began, computed = perf_counter(), thread_time()
                value = made()
                cpu_ms = (thread_time() - computed) * 1000
        except BaseException as error:  # noqa: BLE001  # also a CancelledError, which `foreign_code` does not convert
            return partial(self._fail, call, error)
        if _is_awaitable(value):
            return lambda: self._loop.start(self._await(call, value, began))
        return partial(self._succeed, call, value, (perf_counter() - began) * 1000, cpu_ms)

    async def _run_async(self, call: Call) -> None:
        if self._begin(call):
            try:
                with foreign_code(call.code, call.what):
                    made, _ = _loaded(call)
                    began = perf_counter()
                    value = made()
            except BaseException as error:  # noqa: BLE001
                self._fail(call, error)
            else:
                await self._await(call, value, began)

    async def _await(self, call: Call, value: Awaitable[Any], began: float) -> None:
        import asyncio

        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # this runs in a task
        self._tasks[call.id] = task
        current_call.set(call.id)
        try:
            with foreign_code(call.code, call.what):
                found = await value if _is_awaitable(value) else value
        except ForeignError as error:
            self._fail(call, error)
        except asyncio.CancelledError:
            self._channel.send(Failed(call.id, call.code, f"{call.what} raised CancelledError"))
            if task.cancelling():
                raise
        else:
            self._succeed(call, found, (perf_counter() - began) * 1000)
        finally:
            del self._tasks[call.id]

    def _cancel(self, number: int) -> None:
        with self._lock:
            if self._waiting.pop(number, None) is not None:
                self._channel.send(Withdrawn([number]))
                return
        task = self._tasks.get(number)
        if task is not None:
            task.get_loop().call_soon_threadsafe(task.cancel)

    def _succeed(self, call: Call, value: object, took_ms: float, cpu_ms: float = 0.0) -> None:
        try:
            self._channel.send(Value(call.id, plain(value), took_ms, newly_loaded(), cpu_ms))
        except RecursionError:
            why = "returned a value that is nested too deeply, or contains itself"
            self._channel.send(Failed(call.id, call.code, f"{call.what} {why}"))
        except UnsendableError as error:
            self._channel.send(Unsendable(call.id, str(error)))
        except Exception as error:  # noqa: BLE001  # raised by the value's own conversion method
            self._channel.send(Unsendable(call.id, f"{type(value).__name__} ({type(error).__name__})"))

    def _fail(self, call: Call, error: BaseException) -> None:
        cause: BaseException | None = error
        found = Failure(call.code, f"{call.what} {describe(error)}")
        if isinstance(error, ForeignError):
            found, cause = error.failure, error.__cause__
        text = "" if cause is None else str(cause)
        self._channel.send(Failed(call.id, found.code, found.message, text, newly_loaded()))

    async def ask(self, name: str, arguments: Sequence[object]) -> Any:
        """Call the process that started this one, from a call on the users' loop.

        Raises:
            LookupError: the other process returned an error; the message says why.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        with self._lock:
            self._asked += 1
            number = self._asked
        self._asks[number] = lambda answer: loop.call_soon_threadsafe(_settle, future, answer)
        self._channel.send(Ask(number, current_call.get(), name, list(arguments)))
        answer = await future
        if answer.error is not None:
            raise LookupError(answer.error)
        return answer.value


def _loaded(call: Call) -> tuple[Callable[[], Any], bool]:
    """Load the function of a call. Return the call, not yet made, and whether it only creates a coroutine."""
    function = None
    if call.file is not None or call.module is not None:
        function = load_function(call.name, call.file, call.module)
    adapter = named(call.adapter)
    is_async = iscoroutinefunction(function) or iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # the method itself is inspected
    return lambda: adapter(function, call.payload), is_async


def _is_awaitable(value: object) -> bool:
    return isinstance(value, Coroutine) or hasattr(type(value), "__await__")


def _settle(future: asyncio.Future[Answer], answer: Answer) -> None:
    if not future.done():
        future.set_result(answer)


def _refuse_breakpoint(*_: object, **__: object) -> None:
    __tracebackhide__ = True
    raise RuntimeError("breakpoint() requires the option --debug of agentv eval")


def main(descriptor: int) -> None:
    """Serve the calls that arrive on a socket until it is closed."""
    channel = Channel(socket.socket(fileno=descriptor))
    kill_with_parent()
    begin = channel.receive()
    if not isinstance(begin, Begin):
        return
    sys.path[:] = [begin.directory, *begin.path] if begin.directory else begin.path
    sys.argv = [""]
    if isinstance(sys.stdout, TextIOWrapper):  # so that output before a crash is shown
        sys.stdout.reconfigure(line_buffering=True)
    if not begin.debug and "PYTHONBREAKPOINT" not in os.environ:
        sys.breakpointhook = _refuse_breakpoint
    worker = Worker(channel)
    ask_parent.append(worker.ask)
    newly_loaded()
    channel.send(Ready())
    threading.Thread(target=worker.read, name="agentv-messages", daemon=True).start()
    worker.threads.serve(worker.threads.main)
    atexit._run_exitfuncs()  # noqa: SLF001  # a normal exit would wait for remaining threads
    with suppress(OSError, ValueError):  # user code may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)
