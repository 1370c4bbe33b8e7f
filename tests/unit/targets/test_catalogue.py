from __future__ import annotations

import subprocess
import sys

import pytest

from agentv.targets.catalogue import _provider


@pytest.mark.parametrize("wrong", [int, type("Settings", (), {})])
def test_a_plugin_that_is_no_provider_is_quoted(wrong):
    with pytest.raises(TypeError, match=rf"provider 'mine' must be a frozen dataclass .* got {wrong!r}"):
        _provider("mine", wrong)


def test_what_a_suite_does_not_need_is_not_imported():
    heavy = {"aiohttp", "genai_prices", "httpx", "jinja2", "openai", "rapidfuzz", "subprocess"}
    code = (
        "import sys; from agentv.targets.catalogue import *; found = registry(); list(map(found.find, PROVIDERS));"
        f"print(*({heavy} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ended.stdout.split()) <= {"subprocess"}  # asyncio has it already
