"""What checking one file may take."""

import functools
import signal
import threading
from contextlib import suppress

import pytest

from agentv.app.authored import validate
from agentv.authoring.loading.load import check_file
from agentv.user_code.excerpts import tail
from agentv.user_code.load_limit import GivenUp, begin_record, within_limits


def endless() -> None:
    begin_record("cases.yaml", 7)
    while True:
        pass


def test_what_does_not_get_on_is_given_up_at_the_record_that_was_begun_last() -> None:
    shown = within_limits(endless, seconds=0.1)
    assert shown == GivenUp("ran for more than 0.1 seconds without progress", ("cases.yaml", 7))
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_code_that_swallows_every_exception_is_stopped_all_the_same() -> None:
    def stubborn() -> None:
        for _ in range(2):
            with suppress(BaseException):  # as foreign code may
                endless()
        endless()

    assert isinstance(within_limits(stubborn, seconds=0.05), GivenUp)


@pytest.mark.skipif("sys.platform != 'linux'")
def test_memory_ends_without_a_crash() -> None:
    def hoard() -> None:
        held = []
        while len(held) < 300:
            held.append(bytes(20_000_000))

    assert within_limits(hoard, memory=1_000_000_000) == GivenUp("uses more than 1,000 MB of memory", None)
    assert len(bytes(1_100_000_000)) == 1_100_000_000  # and the limit is gone


def test_a_thread_has_no_limits() -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(within_limits(lambda: 1, seconds=0.001)))
    thread.start()
    thread.join()
    assert found == [1]


def test_validate_goes_on_with_the_next_file(tmp_path, monkeypatch) -> None:
    text = "target: echo\ntests:\n- id: a\n  input: a\n  assert: [{contains: b}]\n"
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(text if name == "a.yaml" else text.replace("contains", "contians"))

    def slow(path, *given):
        found = check_file(path, *given)
        while path.endswith("a.yaml"):
            pass
        return found

    monkeypatch.setattr(validate, "check_file", slow)
    monkeypatch.setattr(validate, "within_limits", functools.partial(within_limits, seconds=0.5))
    paths = (str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"))
    first, second = validate.Validation(paths, {})
    (told,) = first.diagnostics
    assert (told.code, told.severity, told.span.file, told.span.line) == ("too-large", "error", paths[0], 3)
    assert "seconds without progress" in told.message
    assert [one.code for one in second.diagnostics] == ["unknown-assertion"]


def test_nothing_that_steers_a_terminal_is_left():
    assert tail(b"\x1b[31mred\x1b[0m \x1b]0;title\x07done\r\n\x00\x9bend") == "red done\n \ufffdend"
    assert tail("a\u202eb\u2066c".encode()) == "a b c"
