"""What stands in the place of agentv's own code."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Protocol, get_type_hints
from unittest import mock

import pytest

import agentv.user_code
from agentv.errors import ReplacedCodeError
from agentv.lazy_dataclass import dataclass
from agentv.model.run.grade import Grade
from agentv.user_code import excerpts
from agentv.user_code.processes import own_code, replaced_code
from agentv.user_code.processes.own_code import OwnCode
from agentv.user_code.processes.replaced_code import CodeCheck


def other(*_: object, **__: object) -> None:
    """Something else."""


@pytest.mark.parametrize(
    ("owner", "name", "called"),
    [
        (excerpts, "head", "agentv.user_code.excerpts.head"),
        (own_code, "OwnCode", "agentv.user_code.processes.own_code.OwnCode"),
        (own_code, "OURS", "agentv.user_code.processes.own_code.OURS"),
        (Grade, "__init__", "agentv.model.run.grade.Grade.__init__"),
        (Grade, "errored", "agentv.model.run.grade.Grade.errored"),
    ],
)
def test_one_that_was_replaced_is_named(monkeypatch, owner, name, called):
    own = OwnCode()
    assert own.replaced() is None
    monkeypatch.setattr(owner, name, other)
    assert own.replaced() == called


def test_a_function_that_was_removed_or_runs_something_else_is_named(monkeypatch):
    own = OwnCode()
    monkeypatch.delattr(excerpts, "head")
    assert own.replaced() == "agentv.user_code.excerpts.head"
    monkeypatch.undo()
    monkeypatch.setattr(excerpts.head, "__code__", other.__code__)
    assert own.replaced() == "agentv.user_code.excerpts.head"
    monkeypatch.undo()
    assert own.replaced() is None


def test_a_run_is_compared_from_its_first_user_code_on(monkeypatch):
    check = CodeCheck()
    check.begin()
    monkeypatch.setattr(excerpts, "head", other)  # by nobody else's code
    check.expect_user_code()
    assert check.replaced() is None
    monkeypatch.undo()
    check.expect_user_code()  # of another module, which does not hide what the first one did
    assert check.replaced() == "agentv.user_code.excerpts.head"


def test_a_second_thread_begins_no_comparison_after_the_code_of_the_first(monkeypatch):
    check = CodeCheck()
    check.begin()
    looking, go_on = threading.Event(), threading.Event()
    made = []

    class Slow(OwnCode):
        def __init__(self):
            super().__init__()
            made.append(self)
            looking.set()
            go_on.wait(10)

    monkeypatch.setattr(replaced_code, "OwnCode", Slow)
    first = threading.Thread(target=check.expect_user_code)
    first.start()
    looking.wait(10)
    second = threading.Thread(target=check.expect_user_code)
    second.start()
    second.join(0.05)  # so that it is where the first one is
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert len(made) == 1


def test_code_that_was_loaded_before_a_run_counts_from_its_beginning(monkeypatch):
    check = CodeCheck()
    check.expect_user_code()
    assert check.replaced() is None
    check.begin()
    monkeypatch.setattr(excerpts, "head", other)
    assert check.replaced() == "agentv.user_code.excerpts.head"


def test_a_function_that_is_put_back_once_it_was_found_stays_replaced(monkeypatch):
    check = CodeCheck()
    check.expect_user_code()
    check.begin()
    monkeypatch.setattr(excerpts, "head", other)
    assert check.replaced() == "agentv.user_code.excerpts.head"
    monkeypatch.undo()
    assert check.replaced() == "agentv.user_code.excerpts.head"


def test_what_is_loaded_or_added_later_is_no_change(monkeypatch):
    own = OwnCode()
    monkeypatch.setattr(excerpts, "added", other, raising=False)
    assert own.replaced() is None


class _Plain:
    """A class of agentv's, as the check sees it."""

    def __init__(self) -> None:
        self.kept = 1

    def read(self) -> int:
        return self.kept


class _Speaks(Protocol):
    def speak(self) -> str: ...


class _Speaker(_Speaks):
    def speak(self) -> str:
        return "hello"


def _made_by_a_library() -> type:
    class Made:
        def check(self) -> bool:
            return False

    Made.__module__ = "some.library"
    return Made


@pytest.fixture
def classes(monkeypatch):
    for cls in (_Plain, _Speaks, _Speaker):
        monkeypatch.setattr(cls, "__module__", own_code.__name__)
        monkeypatch.setattr(own_code, cls.__name__, cls, raising=False)
    monkeypatch.setattr(own_code, "_Made", _made_by_a_library(), raising=False)
    return OwnCode()


HIDING = (
    (Grade, "passed", property(lambda _: True)),  # in the place of a slot
    (_Plain, "kept", property(lambda _: 2, lambda *_: None)),
    (_Plain, "__getattribute__", lambda *_: 2),
    (excerpts, "len", lambda _: 0),
)


@pytest.mark.parametrize(("owner", "name", "value"), HIDING)
def test_a_name_that_hides_another_is_named(monkeypatch, classes, owner, name, value):
    monkeypatch.setattr(owner, name, value, raising=False)
    home = owner.__name__ if owner is excerpts else f"{owner.__module__}.{owner.__name__}"
    assert classes.replaced() == f"{home}.{name}"


def test_names_that_are_added_and_hide_nothing_are_no_change(monkeypatch, classes):
    monkeypatch.setattr(_Plain, "shown", property(lambda _: 2), raising=False)
    monkeypatch.setattr(_Plain, "note", "mine", raising=False)
    monkeypatch.setattr(_Plain, "__note__", "mine", raising=False)
    monkeypatch.setattr(excerpts, "note", other, raising=False)
    assert _Speaker().speak() == "hello"  # which makes `typing` add `__init__` to the class
    assert classes.replaced() is None
    monkeypatch.setattr(_Plain, "note", "other")
    assert classes.replaced() == "agentv.user_code.processes.own_code._Plain.note", "it is known since it was added"


@pytest.mark.parametrize("value", [{"a": 1}, ["a"], {"a"}])
def test_a_value_without_a_hash_that_was_replaced_is_named(monkeypatch, value):
    monkeypatch.setattr(excerpts, "constant", value, raising=False)
    own = OwnCode()
    assert own.replaced() is None
    monkeypatch.setattr(excerpts, "constant", type(value)(value))
    assert own.replaced() == "agentv.user_code.excerpts.constant"


def test_what_python_makes_when_it_is_read_or_sets_again_is_no_change(monkeypatch, classes):
    assert get_type_hints(excerpts) == {}
    monkeypatch.setattr(_Plain, "__abstractmethods__", frozenset("a"), raising=False)
    assert classes.replaced() is None
    monkeypatch.setattr(_Plain, "__abstractmethods__", frozenset(["a"]))
    assert classes.replaced() is None
    monkeypatch.setattr(_Plain, "__abstractmethods__", frozenset())
    assert classes.replaced() == "agentv.user_code.processes.own_code._Plain.__abstractmethods__"


def test_a_class_that_a_function_made_is_compared(monkeypatch, classes):
    monkeypatch.setattr(own_code._Made, "check", lambda _: True)
    assert classes.replaced() == "agentv.user_code.processes.own_code._Made.check"


def test_a_module_that_is_taken_out_and_loaded_again_is_no_change():
    check = CodeCheck()
    with mock.patch.object(sys, "meta_path", [*sys.meta_path]):
        check.begin()
        check.expect_user_code()
        with mock.patch.dict(sys.modules):
            del sys.modules["agentv.user_code.excerpts"]
            assert check.replaced() is None
            again = importlib.import_module("agentv.user_code.excerpts")
            assert check.replaced() is None
        assert agentv.user_code.excerpts is again
        agentv.user_code.excerpts = excerpts
        assert check.replaced() is None
        importlib.reload(excerpts)
        assert check.replaced() is None


def test_a_module_that_is_not_of_this_package_is_named(monkeypatch, tmp_path):
    (tmp_path / "planted.py").write_text("")
    check = CodeCheck()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    check.begin()
    check.expect_user_code()
    monkeypatch.setattr(agentv.user_code, "__path__", [str(tmp_path), *agentv.user_code.__path__])
    importlib.import_module("agentv.user_code.planted")
    found = check.replaced()
    del sys.modules["agentv.user_code.planted"]
    assert found == "agentv.user_code.planted"


def test_a_module_that_is_loaded_later_counts_from_then_on(monkeypatch):
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(agentv.user_code, "excerpts", excerpts)  # which the import changes
    monkeypatch.delitem(sys.modules, "agentv.user_code.excerpts")
    check = CodeCheck()
    check.begin()
    check.expect_user_code()
    later = importlib.import_module("agentv.user_code.excerpts")
    assert later is not excerpts
    assert later.__spec__.loader.get_source(later.__name__)
    assert check.replaced() is None
    monkeypatch.setattr(later, "head", other)
    assert check.replaced() == "agentv.user_code.excerpts.head"


def test_what_another_process_of_a_command_found_counts_here(monkeypatch):
    check = CodeCheck()
    check.note("agentv.a")  # of a command whose process is the caller's own
    assert check.replaced() is None
    check.begin()
    check.note("agentv.a")
    check.note("agentv.b")
    assert check.replaced() == "agentv.a"
    with pytest.raises(ReplacedCodeError, match=r"^user code replaced agentv\.a, which belongs to agentv$"):
        check.refuse()


@dataclass(frozen=True, slots=True)
class _Lazy:
    """A class of agentv's, as the check sees it: its methods are compiled when they are called."""

    value: int


class _EqualToAll:
    __hash__ = None

    def __eq__(self, _: object) -> bool:
        return True


@pytest.fixture
def lazy(monkeypatch):
    monkeypatch.setattr(_Lazy, "__module__", own_code.__name__)
    monkeypatch.setattr(own_code, "_Lazy", _Lazy, raising=False)
    return OwnCode()


def test_a_method_that_is_compiled_at_its_first_call_is_no_change(lazy):
    assert _Lazy(1) == _Lazy(1)
    assert lazy.replaced() is None


@pytest.mark.parametrize("value", [other, _EqualToAll()])
def test_one_that_takes_the_place_of_a_compiled_method_is_named(lazy, monkeypatch, value):
    _Lazy(1)
    monkeypatch.setattr(_Lazy, "__init__", value)
    assert lazy.replaced() == f"{own_code.__name__}._Lazy.__init__"


def test_code_that_is_put_into_a_compiled_method_is_named(lazy, monkeypatch):
    _Lazy(1)
    monkeypatch.setattr(_Lazy.__init__, "__code__", other.__code__)
    assert lazy.replaced() == f"{own_code.__name__}._Lazy.__init__"
