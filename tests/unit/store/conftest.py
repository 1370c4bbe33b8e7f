from __future__ import annotations

import pytest

from agentv.user_code.processes.replaced_code import check


@pytest.fixture
def replace_code(monkeypatch):
    """Stands for user code that replaces a function of agentv."""

    def replace() -> None:
        monkeypatch.setattr(check, "_found", "agentv.some.function")

    return replace
