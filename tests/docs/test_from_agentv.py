"""The page about AgentV lists every key that is passed over, and every agent that is not supported yet."""

from __future__ import annotations

from pathlib import Path

from agentv.authoring.fields.agentv.names import PROVIDERS
from agentv.authoring.header.agentv_config import NO_EFFECT, NO_EFFECT_IN_EXECUTION
from agentv.authoring.targets.passed_over import NO_EFFECT as NO_EFFECT_IN_TARGETS
from agentv.targets.catalogue import NOT_YET

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-agentv.md"
OTHERS = {"acp", "gemini-cli", "mini-swe", "mini-swe-agent", "opencode"}
"""Agents that AgentV does not have."""


def test_the_page_lists_every_key_and_name():
    text = PAGE.read_text(encoding="utf-8")
    words = {*NO_EFFECT, *NO_EFFECT_IN_EXECUTION, *NO_EFFECT_IN_TARGETS, *PROVIDERS, *(NOT_YET - OTHERS)}
    assert [word for word in sorted(words) if f"`{word}`" not in text] == []
