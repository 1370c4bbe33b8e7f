from __future__ import annotations

import pytest

from agentv.authoring.convert.dialects import by_record


@pytest.mark.parametrize(
    ("keys", "formats"),
    [
        ("input ideal", ["openai-evals"]),
        ("input target", ["inspect"]),
        ("input target id metadata", ["inspect"]),
        ("input choices", ["inspect"]),
        ("input expected_output retrieval_context", ["deepeval"]),
        ("input expectedOutput", ["deepeval"]),
        ("scenario expected_outcome turns", ["deepeval"]),
        ("scenario", []),
        ("input expected_output", []),
        ("input ideal target", ["inspect", "openai-evals"]),
        ("id input target assert", []),
        ("id input target criteria", []),
        ("id input actual_output evaluators", []),
        ("question answer", []),
    ],
)
def test_a_format_is_told_by_keys_that_only_it_has(keys: str, formats: list[str]) -> None:
    assert sorted(claim.name for claim in by_record(keys.split())) == formats
