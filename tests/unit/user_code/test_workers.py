"""Workers from the outside: what they load and send, which calls share one, and how they die."""

import asyncio
import dataclasses
import enum
import os
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePosixPath
from threading import Thread
from types import MappingProxyType

import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.ports import CodeCall, Raised, Returned
from agentv.user_code.blocking import close_blocking, series_of
from agentv.user_code.deadline import LIMIT, Deadline
from agentv.user_code.functions import load_function, load_module
from agentv.user_code.guard import ForeignError
from agentv.user_code.workers.messages import LENGTH, Reply, UnsendableError, Value, packed, plain, unpacker
from agentv.user_code.workers.workers import Workers
from doubles.processes_alive import alive

BY_NAME = "agentv.user_code.workers.adapters:by_name"
CODE = """
import asyncio, os, signal, socket, sys, threading, time

seen = []

def whoami(value):
    seen.append(value)
    return os.getpid(), list(seen), threading.current_thread() is threading.main_thread()

def environment(value):
    return os.environ.get("WORD")

def path(value):
    return sys.path[0]

def exits(value):
    os._exit(int(value))

def ends_but_alone(value):
    if value == "ends" and not os.path.exists(__file__ + ".ended"):
        open(__file__ + ".ended", "w").close()
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    return value

def sleeps(value):
    time.sleep(value)
    return os.getpid()

async def waits(value):
    await asyncio.sleep(value)
    return os.getpid()

async def blocks(value):
    time.sleep(value)
    return os.getpid()

def computes(value):
    until = time.thread_time() + value
    while time.thread_time() < until:
        pass
    return os.getpid()

def on_a_loop(value):
    return asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, value))

def child(value):
    pid = os.fork()
    if pid == 0:
        time.sleep(100)
        os._exit(0)
    return pid

def closes(value):
    os.closerange(3, 256)
    return value

def writes(value):
    import stat
    for number in range(3, 4096):
        try:
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, bytes.fromhex(value))
        except OSError:
            pass
    return "written"

def descriptors(value):
    found = [f"/proc/self/fd/{one}" for one in os.listdir("/proc/self/fd")]
    return [os.readlink(one) for one in found if os.path.exists(one)]

async def asks(value):
    from agentv.user_code.workers.adapters import ask_parent
    try:
        return await ask_parent[0]("judge", [value])
    except LookupError as error:
        return str(error)

def interrupt(value):
    return 1 / 0
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "code.py").write_text(CODE)
    return str(tmp_path / "code.py")


def call(file: str, name: str, value: object = None, **settings) -> CodeCall:
    given = {"role": "tested", "code": "raised", "what": name, **settings}
    payload = {"offered": {"value": value}, "single": "value"}
    return CodeCall(adapter=BY_NAME, payload=payload, function=name, file=file, **given)


def results(*calls: CodeCall, at_once: bool = True) -> list[Returned | Raised]:
    async def run():
        workers = Workers()
        try:
            if at_once:
                return await asyncio.gather(*map(workers.call, calls))
            return [await workers.call(one) for one in calls]
        finally:
            await workers.close()

    return asyncio.run(asyncio.wait_for(run(), 60))


def values(*calls: CodeCall, at_once: bool = True) -> list[object]:
    found = results(*calls, at_once=at_once)
    assert not [one for one in found if isinstance(one, Raised)], found
    return [one.value for one in found]


def test_calls_of_one_directory_role_and_environment_share_a_process_and_no_others_do(file, tmp_path):
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "code.py"
    other.write_text(CODE)
    one = call(file, "whoami", 1)
    differing = [
        one,
        replace(one, role="grading"),
        replace(one, file=str(other)),
        replace(one, env={**os.environ, "WORD": "x"}),
    ]
    found = values(*differing, *differing, at_once=False)
    assert len({pid for pid, _, _ in found}) == 4
    assert [seen for _, seen, _ in found] == [[1]] * 4 + [[1, 1]] * 4
    assert os.getpid() not in {pid for pid, _, _ in found}
    assert all(is_main for _, _, is_main in found)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core computes one call at a time")
@pytest.mark.parametrize(("name", "processes", "used"), [("computes", 2, 2), ("computes", 1, 1), ("sleeps", 2, 1)])
def test_calls_that_compute_are_divided_among_as_many_processes_as_are_allowed(file, name, processes, used):
    async def run():
        workers, one = Workers(), call(file, name, 0.02, processes=processes)

        async def lane():
            return [await workers.call(one) for _ in range(5)]

        try:
            return await asyncio.gather(lane(), lane())
        finally:
            await workers.close()

    found = asyncio.run(asyncio.wait_for(run(), 60))
    assert len({answer.value for answers in found for answer in answers}) == used


def test_its_path_begins_at_the_directory_and_its_environment_is_the_one_that_was_given(file, tmp_path):
    env = {**os.environ, "WORD": "given"}
    assert values(call(file, "path"), call(file, "environment", env=env)) == [str(tmp_path), "given"]
    assert values(call(file, "path", directory="/"), call(file, "environment")) == ["/", None]


def test_a_call_that_ends_its_process_is_at_fault_only_if_it_does_so_alone(file):
    ends, other = results(call(file, "ends_but_alone", "ends"), call(file, "sleeps", 1))
    for one in (ends, other):
        assert [attempt.code for attempt in one.attempts] == ["user-code-died"]
    (exits,) = results(call(file, "exits", 3))
    assert (exits.code, exits.message) == ("user-code-died", "exits: exit 3 before it answered")
    assert [one.code for one in exits.attempts] == ["user-code-died"]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("exits", 0, "exits: exit 0 before it answered"),
        ("closes", None, "closes: closed the socket of its process before it answered"),
        ("writes", "ff" * 100, "writes: killed by SIGKILL before it answered"),
        ("writes", "00000001c1", "writes: killed by SIGKILL before it answered"),
        ("interrupt", None, "interrupt raised ZeroDivisionError: division by zero (code.py:"),
        ("absent", None, "code.py has no function 'absent'; it has "),
    ],
)
def test_what_goes_wrong_is_said_and_harms_no_later_call(file, name, value, says):
    wrong, right = results(call(file, name, value), call(file, "on_a_loop", 1), at_once=False)
    assert wrong.message.startswith(says)
    assert right.value == 1


def test_children_of_a_worker_end_with_it_and_it_inherits_no_descriptor_of_ours(file, tmp_path):
    with (tmp_path / "journal").open("w") as journal:
        child, descriptors = values(call(file, "child"), call(file, "descriptors"))
    assert journal.name not in descriptors
    until = time.monotonic() + 5
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)


def test_coroutines_that_have_not_begun_while_one_blocks_the_loop_begin_elsewhere(file):
    async def limited(workers, one):
        limit = Deadline(4.0)
        LIMIT.set(limit)
        return await workers.call(one)

    async def run():
        workers = Workers()
        try:
            for name in ("blocks", "waits"):
                await workers.call(call(file, name, 0))
            return await asyncio.gather(
                *(asyncio.create_task(limited(workers, call(file, name, 3))) for name in ("blocks", "waits"))
            )
        finally:
            await workers.close()

    blocks, waits = asyncio.run(run())
    assert blocks.value != waits.value


def test_a_call_that_is_given_up_retires_its_worker_and_its_neighbours_finish(file):
    async def run():
        workers = Workers()
        try:
            ((first, *_),) = [(await workers.call(call(file, "whoami"))).value]
            neighbour = asyncio.create_task(workers.call(call(file, "sleeps", 2)))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(workers.call(call(file, "sleeps", 100)), 0.3)
            await asyncio.sleep(1)
            ((second, *_),) = [(await workers.call(call(file, "whoami"))).value]
            finished = await neighbour
            await asyncio.sleep(0.2)
            return first, second, finished.value, alive(first)
        finally:
            await workers.close()

    first, second, finished, lives = asyncio.run(run())
    assert (finished, second != first, lives) == (first, True, False)


def test_a_worker_that_does_not_start_is_an_error(file, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (found,) = results(call(file, "whoami"))
    assert found.code == "cannot-start"


def test_a_worker_that_does_not_start_after_one_died_is_an_error(file, monkeypatch):
    async def run():
        workers = Workers()
        try:
            await workers.call(call(file, "whoami"))
            monkeypatch.setattr(sys, "executable", "/nowhere/python")
            return await workers.call(call(file, "exits", 3))
        finally:
            await workers.close()

    assert [(found := asyncio.run(run())).code, len(found.attempts)] == ["cannot-start", 1]


def test_a_request_that_its_handler_cannot_serve_raises_in_the_function(file):
    async def handler(name, arguments):
        return arguments[0] + 1

    (found,) = results(replace(call(file, "asks", "a word"), handler=handler))
    assert found.value == 'judge: TypeError: can only concatenate str (not "int") to str'


@pytest.fixture(autouse=True)
def as_in_a_worker(monkeypatch, tmp_path):
    """Put the directory first on `sys.path`, and unload modules afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_file_that_hangs_holds_up_no_other(tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import time\nfrom pathlib import Path\nhere = Path(__file__).parent\n(here / 'begun').touch()\n"
        "for _ in range(1000):\n    if (here / 'loaded').exists():\n        break\n    time.sleep(0.01)\n"
        "else:\n    (here / 'alone').touch()\n"
    )
    (tmp_path / "works.py").write_text("def answer():\n    return 1\n")
    thread = Thread(target=load_module, args=(str(tmp_path / "hangs.py"), None))
    thread.start()
    while not (tmp_path / "begun").exists():
        time.sleep(0.001)
    assert load_function("answer", str(tmp_path / "works.py"))() == 1
    (tmp_path / "loaded").touch()
    thread.join()
    assert not (tmp_path / "alone").exists()


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("def one(): pass\ndef two(): pass\n", "three", "x.py has no function 'three'; it has one, two"),
        ("one = 1\n", "one", "x.py has no function 'one'"),
        ("def one(:\n", "one", "SyntaxError"),
        ("1 / 0\n", "one", "x.py raised ZeroDivisionError"),
        ("import sys; sys.exit(3)\n", "one", "x.py called sys.exit"),
    ],
)
def test_what_cannot_be_loaded_is_said_each_time(tmp_path, text, name, says):
    (tmp_path / "x.py").write_text(text)
    for _ in range(2):
        with pytest.raises(ForeignError) as caught:
            load_function(name, str(tmp_path / "x.py"))
        assert caught.value.failure.code == "cannot-load"
        assert says in caught.value.failure.message


def test_a_function_of_a_module_is_found_by_its_name():
    assert load_function("dumps", module="json")([1]) == "[1]"
    with pytest.raises(ForeignError, match="module no_such_module raised ModuleNotFoundError"):
        load_function("x", module="no_such_module")


TEXTS = st.text(st.characters(codec=None))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers(), inner),
    max_leaves=10,
)


def sent(value):
    body = packed(Value(1, value))
    assert int.from_bytes(body[:LENGTH], "big") == len(body) - LENGTH
    return unpacker(Reply).decode(body[LENGTH:]).value


@given(DATA)
def test_plain_data_arrives_as_it_was(value):
    assert sent(value) == value


@given(DATA)
def test_plain_data_is_plain_already(value):
    assert plain(value) == value


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    inner: object = None


class Model(pydantic.BaseModel):
    a: int = 1
    when: datetime = datetime(2020, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (Point(1, Point(2)), {"x": 1, "inner": {"x": 2, "inner": None}}),
        (Model(), {"a": 1, "when": "2020-01-02T00:00:00Z"}),
        ({"k": [np.float64(0.5), np.int32(3), np.bool_(True)]}, {"k": [0.5, 3, True]}),  # the values that it holds
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (Decimal("1.5"), 1.5),
        (type("Markup", (str,), {})("<b>"), "<b>"),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (PurePosixPath("/a/b"), "/a/b"),
        (datetime(2020, 1, 2, tzinfo=UTC), "2020-01-02T00:00:00Z"),
        (MappingProxyType({"a": range(2)}), {"a": [0, 1]}),
        (10**30, 10**30),
        ({"\ud800": "\udfff"}, {"\ud800": "\udfff"}),
    ],
)
def test_results_are_made_plain(value, result):
    assert sent(plain(value)) == result


class Hostile:
    def __reduce__(self):
        raise AssertionError("it was pickled")


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Hostile(), "Hostile"),
        (iter(()), "tuple_iterator"),
        (lambda: 1, "function"),
        ({"a": [object()]}, "object"),
        (Point, "type"),
    ],
)
def test_what_is_no_data_is_named_by_its_type(value, name):
    with pytest.raises(UnsendableError, match=f"^{name}$"):
        plain(value)


def test_what_contains_itself_is_refused():
    held = []
    held.append(held)
    with pytest.raises(RecursionError):
        plain(held)


def test_a_series_that_takes_long_goes_on_where_it_began(tmp_path, monkeypatch):
    monkeypatch.setattr("agentv.user_code.workers.workers.LONGEST_S", 0.05)
    file = tmp_path / "cases.py"
    file.write_text("import time\n\ndef slow():\n    for one in (1, 2):\n        time.sleep(0.2)\n        yield one\n")
    call = CodeCall("authoring", "", None, code="bad", what="slow", function="slow", file=str(file))
    try:
        assert list(series_of(call, "operator:add", (1,), 10.0)) == [2, 3]
    finally:
        close_blocking()
