"""Targets of each model API, at a loopback server."""

from typing import Any

from agentv.targets.anthropic.target import Anthropic
from agentv.targets.gemini.target import Gemini
from agentv.targets.litellm.target import LiteLLM
from agentv.targets.openai_api.providers import Azure, OpenAI

KEY = "sk-a-very-secret-key"
APIS: dict[str, Any] = {
    "openai": lambda server: OpenAI("gpt-4o", server.openai, KEY),
    "responses": lambda server: OpenAI("gpt-4o", server.openai, KEY, api="responses"),
    "azure": lambda server: Azure("d", server.azure, KEY),
    "anthropic": lambda server: Anthropic("claude-haiku-4-5", server.anthropic, KEY),
    "gemini": lambda server: Gemini("gemini-2.5-flash", server.gemini, KEY),
    "litellm": lambda server: LiteLLM("openai/gpt-4o", server.openai, KEY),
}
