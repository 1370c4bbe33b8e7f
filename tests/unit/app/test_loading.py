"""What a command loads: each module that it does not use would be paid for at every start."""

from __future__ import annotations

import subprocess
import sys

import pytest

UNUSED = {
    "agentv.user_code.processes.command_process": {"ctypes", "click", "pathlib", "agentv.cli"},
    "agentv.app.authored.validate": {"asyncio", "ssl", "tempfile", "agentv.engine.run", "agentv.store.journal.journal"},
    "agentv.cli.running.progress": {
        "tempfile",
        "html",
        "agentv.store.cassettes.cassette",
        "agentv.judge",
    },
}


@pytest.mark.parametrize(("module", "unused"), UNUSED.items())
def test_what_is_not_used_is_not_loaded(module, unused):
    code = f"import sys, {module}; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert module in loaded
    assert unused.isdisjoint(loaded)
