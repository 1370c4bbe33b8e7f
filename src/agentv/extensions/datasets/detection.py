"""Detection of the tool that a file of samples was made for, by the keys of its first record."""

from __future__ import annotations

from collections.abc import Iterable

from agentv.authoring.source.spellings import CASE

DEEPEVAL = "deepeval"
OPENAI_EVALS = "openai-evals"
INSPECT = "inspect"

TITLES = {
    DEEPEVAL: "goldens of deepeval",
    OPENAI_EVALS: "samples of OpenAI evals",
    INSPECT: "samples of Inspect",
}
"""Format → what a file of it contains, for messages."""

CHECKED = frozenset({*CASE.spelled("assert"), *CASE.spelled("criteria"), "rubrics", "turns"})
"""Keys that only a case of agentv has."""

_GOLDEN = frozenset(
    [
        "actual_output",
        "actualOutput",
        "expectedOutput",
        "retrieval_context",
        "retrievalContext",
        "additional_metadata",
        "additionalMetadata",
        "source_file",
        "sourceFile",
        "tools_called",
        "toolsCalled",
        "expected_tools",
        "expectedTools",
        "custom_column_key_values",
        "customColumnKeyValues",
    ]
)
_CONVERSATION = frozenset({"user_description", "userDescription", "persona", "expected_outcome", "expectedOutcome"})
_OF_INSPECT = frozenset({"target", "choices", "sandbox", "setup"})


def formats_of(keys: Iterable[str]) -> tuple[str, ...]:
    """The formats that a record with these keys can only be of; none where it may be a case of agentv.

    Args:
        keys: of the first record of a file.
    """
    found = frozenset(keys)
    if "scenario" in found and found & _CONVERSATION:
        return (DEEPEVAL,)
    if "input" not in found or found & CHECKED:
        return ()
    signs = {OPENAI_EVALS: "ideal" in found, INSPECT: bool(found & _OF_INSPECT), DEEPEVAL: bool(found & _GOLDEN)}
    return tuple(name for name, holds in signs.items() if holds)
