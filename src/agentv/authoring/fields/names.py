"""Older names of providers, of their settings and of assertion types."""

from __future__ import annotations

SETTINGS = {
    "arguments": "args",
    "binary": "command",
    "command_template": "command",
    "executable": "command",
    "api_format": "api",
    "deployment": "model",
    "deploymentName": "model",
    "variant": "model",
    "endpoint": "base_url",
    "resource": "base_url",
    "resourceName": "base_url",
    "thinking_budget": "thinking",
    "thinkingBudget": "thinking",
    "attachments_format": "files_format",
    "apiKey": "api_key",
    "apiBaseUrl": "base_url",
    "baseURL": "base_url",
    "baseUrl": "base_url",
    "api_base": "base_url",
    "apiVersion": "api_version",
    "maxTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "topP": "top_p",
    "topK": "top_k",
    "stopSequences": "stop",
    "stop_sequences": "stop",
    "systemPrompt": "system",
    "system_prompt": "system",
    "systemInstruction": "system",
    "extra_body": "extra",
    "passthrough": "extra",
}
"""Older spellings among a provider's own settings: AgentV's, promptfoo's, and those of the providers' SDKs."""

PROVIDERS = {
    "azure-openai": "azure",
    "azureopenai": "azure",
    "claude-cli": "claude",
    "claude-code": "claude",
    "claude-sdk": "claude",
    "codex-app-server": "codex",
    "codex-cli": "codex",
    "codex-sdk": "codex",
    "copilot": "copilot-cli",
    "copilot-sdk": "copilot-cli",
    "fireworks-ai": "fireworks",
    "google": "gemini",
    "google-gemini": "gemini",
    "hugging-face": "huggingface",
    "mini-swe": "mini-swe-agent",
    "pi": "pi-cli",
    "pi-coding-agent": "pi-cli",
    "pi-rpc": "pi-cli",
    "pi-sdk": "pi-cli",
    "together-ai": "together",
    "togetherai": "together",
    "vertex-ai": "vertex",
}
"""Older names of providers, in kebab-case: AgentV's, promptfoo's and LiteLLM's."""

ASSERTION_TYPES = {
    "llm-grader": "llm-rubric",
    "llm-judge": "llm-rubric",
    "rubric": "llm-rubric",
    "rubrics": "llm-rubric",
    "g-eval": "llm-rubric",
    "model-graded-closedqa": "closed-qa",
    "model-graded-factuality": "factuality",
    "matches": "regex",
    "code-grader": "script",
    "code-judge": "script",
    "composite": "assert-set",
    "skill-trigger": "skill-used",
}
"""Older names of assertion types, in kebab-case."""


def folded(written: str) -> str:
    """The part of a `provider:rest` string in front of the colon, as names of providers are written."""
    return written.partition(":")[0].strip().lower().replace("_", "-")


def provider_name(written: str) -> str:
    """The canonical name of the provider in a `provider:rest` string."""
    return PROVIDERS.get(folded(written), folded(written))


def type_name(written: str) -> tuple[str, bool]:
    """An assertion type as written → its canonical kebab-case name, and whether `not-` in front inverts it."""
    name = written.strip().replace("_", "-")
    inverted = False
    while name.startswith("not-"):
        name = name[4:]
        inverted = not inverted
    return ASSERTION_TYPES.get(name, name), inverted
