"""Canonical names for authored ones: suggestions for misspelt names, and names from other tools and older versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice

MOST = 500
"""Maximum number of known names to compare; longer lists are machine-generated."""

LONGEST = 100
"""Maximum length of a name to suggest a correction for."""

CUTOFF = 0.6
"""Minimum normalized similarity of a suggestion."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant, or None."""
    from rapidfuzz.distance import DamerauLevenshtein, Prefix
    from rapidfuzz.process import extractOne

    choices = list(islice(known, MOST))
    if len(name) > LONGEST:
        return None
    head, _, rest = name.partition(".")
    inside = [one.removeprefix(f"{head}.") for one in choices if one.startswith(f"{head}.")] if head in choices else []
    if inside:  # a key in a nested mapping: the part before the dot is correct
        suggestion = nearest(rest, inside)
        return f"{head}.{suggestion}" if suggestion is not None else None
    found = extractOne(name, choices, scorer=DamerauLevenshtein.normalized_similarity, score_cutoff=CUTOFF)
    if found is not None:
        return str(found[0])
    begun = [choice for choice in choices if Prefix.similarity(name, choice) >= min(4, len(name), len(choice)) > 2]
    return min(begun, key=len, default=None)


def nearest_first(name: str, known: Iterable[str]) -> list[str]:
    """The known names sorted by similarity, most similar first."""
    from rapidfuzz.distance import DamerauLevenshtein

    return sorted(islice(known, MOST), key=lambda one: -DamerauLevenshtein.normalized_similarity(name, one))


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that suggests the nearest known name, or None."""
    found = nearest(name, known)
    return f"did you mean '{found}'?" if found else None


MEANT: Mapping[str, str] = {
    **dict.fromkeys(("prompt", "question", "query", "user", "message", "messages"), "input"),
    **dict.fromkeys(("expected", "answer", "output", "ideal", "target_output", "ground_truth"), "expected_output"),
    **dict.fromkeys(("check", "checks", "asserts", "expect", "evals", "graders", "scorers"), "assert"),
    **dict.fromkeys(("model", "models", "agent", "llm"), "target"),
    **dict.fromkeys(("variables", "params", "args"), "vars"),
    **dict.fromkeys(("label", "title", "key"), "id"),
    "not": "negate",
    **dict.fromkeys(("samples", "dataset", "items", "examples", "scenarios"), "tests"),
}
"""Key in other tools → our key, for hints about unknown keys."""

_CONTEXT = "put it into the variable 'context': vars: {context: …}; the context-* assertions read it from there"
_MODEL = "name the provider and the model in the target: targets: openai:gpt-5"

HINTS: Mapping[str, Mapping[str, str]] = {
    "an eval file": {**dict.fromkeys(("model", "models"), _MODEL), "metrics": "did you mean 'assert'?"},
    "a case": {
        **dict.fromkeys(("context", "contexts", "retrieval_context", "retrieved_contexts", "documents"), _CONTEXT),
        "actual_output": "the target gives the answer; for recorded answers, use the provider 'replay'",
        "metrics": "did you mean 'assert'?",
    },
}
"""Kind of mapping → unknown key that other tools have there → hint."""


SETTINGS: Mapping[str, str] = {
    "arguments": "args",
    **dict.fromkeys(("binary", "command_template", "executable"), "command"),
    "api_format": "api",
    **dict.fromkeys(("deployment", "deploymentName", "variant"), "model"),
    **dict.fromkeys(("endpoint", "resource", "resourceName"), "base_url"),
    **dict.fromkeys(("thinking_budget", "thinkingBudget"), "thinking"),
    "attachments_format": "files_format",
    "apiKey": "api_key",
    **dict.fromkeys(("apiBaseUrl", "baseURL", "baseUrl", "api_base"), "base_url"),
    "apiVersion": "api_version",
    **dict.fromkeys(("maxTokens", "max_completion_tokens", "maxOutputTokens", "max_output_tokens"), "max_tokens"),
    "topP": "top_p",
    "topK": "top_k",
    **dict.fromkeys(("stopSequences", "stop_sequences"), "stop"),
    **dict.fromkeys(("systemPrompt", "system_prompt", "systemInstruction"), "system"),
    **dict.fromkeys(("extra_body", "passthrough"), "extra"),
}
"""Older spelling of a provider's own setting → setting: AgentV's, promptfoo's, and those of the providers' SDKs."""

PROVIDERS: Mapping[str, str] = {
    **dict.fromkeys(("azure-openai", "azureopenai"), "azure"),
    **dict.fromkeys(("claude-cli", "claude-code", "claude-sdk"), "claude"),
    **dict.fromkeys(("codex-app-server", "codex-cli", "codex-sdk"), "codex"),
    **dict.fromkeys(("copilot", "copilot-sdk"), "copilot-cli"),
    "fireworks-ai": "fireworks",
    **dict.fromkeys(("google", "google-gemini"), "gemini"),
    "hugging-face": "huggingface",
    "mini-swe": "mini-swe-agent",
    **dict.fromkeys(("pi", "pi-coding-agent", "pi-rpc", "pi-sdk"), "pi-cli"),
    **dict.fromkeys(("together-ai", "togetherai"), "together"),
    "vertex-ai": "vertex",
}
"""Older name of a provider in kebab-case → name: AgentV's, promptfoo's and LiteLLM's."""

ASSERTION_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("llm-grader", "llm-judge", "rubric", "rubrics", "g-eval"), "llm-rubric"),
    "model-graded-closedqa": "closed-qa",
    "model-graded-factuality": "factuality",
    "matches": "regex",
    **dict.fromkeys(("code-grader", "code-judge"), "script"),
    "composite": "assert-set",
    "skill-trigger": "skill-used",
}
"""Older name of an assertion type in kebab-case → name."""


def folded(written: str) -> str:
    """The provider's name in a `provider:rest` string, in kebab-case."""
    return written.partition(":")[0].strip().lower().replace("_", "-")


def provider_name(written: str) -> str:
    """The canonical name of the provider in a `provider:rest` string."""
    return PROVIDERS.get(folded(written), folded(written))


def type_name(written: str) -> tuple[str, bool]:
    """The canonical name of an assertion type, and whether its `not-` prefixes invert it."""
    name = written.strip().replace("_", "-")
    inverted = False
    while name.startswith("not-"):
        name = name[4:]
        inverted = not inverted
    return ASSERTION_TYPES.get(name, name), inverted
