"""Ports."""

from __future__ import annotations

import pytest

from agentv.errors import ExitStatus, UsageError
from agentv.web.serving import listening_socket


def test_a_port_in_use_is_told_and_without_one_the_next_is_taken():
    with listening_socket(None) as first, listening_socket(None) as second:
        assert first.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] != second.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {first.getsockname()[1]} is in use") as refused:
            listening_socket(first.getsockname()[1])
        assert "--port" in (refused.value.hint or "")
        assert refused.value.status == ExitStatus.WRONG
