"""Keys of other programs, and those that people guess, for the hints at keys that are unknown."""

from __future__ import annotations

from collections.abc import Mapping

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
"""What other programs, and people, call a key → the key, for the hint at one that is unknown."""

_CONTEXT = "put it into the variable 'context': vars: {context: …}; the context-* assertions read it from there"
_MODEL = "name the provider and the model in the target: targets: openai:gpt-5"

HINTS: Mapping[str, Mapping[str, str]] = {
    "an eval file": {
        **dict.fromkeys(("model", "models"), _MODEL),
        "metrics": "did you mean 'assert'?",
    },
    "a case": {
        **dict.fromkeys(("context", "contexts", "retrieval_context", "retrieved_contexts", "documents"), _CONTEXT),
        "actual_output": "the target gives the answer; for recorded answers, use the provider 'replay'",
        "metrics": "did you mean 'assert'?",
    },
}
"""Kind of mapping → unknown key that other programs have there → the hint."""
