"""What stands in the place of agentv's own code."""

from __future__ import annotations

import pytest

from agentv.model.run.grade import Grade
from agentv.user_code import excerpts
from agentv.user_code.processes import replaced_code as untouched
from agentv.user_code.processes.replaced_code import OwnCode


def other(*_: object, **__: object) -> None:
    """Something else."""


@pytest.mark.parametrize(
    ("owner", "name", "called"),
    [
        (excerpts, "head", "agentv.user_code.excerpts.head"),
        (untouched, "OwnCode", "agentv.user_code.processes.replaced_code.OwnCode"),
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


def test_what_is_loaded_or_added_later_is_no_change(monkeypatch):
    own = OwnCode()
    monkeypatch.setattr(excerpts, "added", other, raising=False)
    assert own.replaced() is None
