import pytest

from agentv.authoring.dialects.recognition import by_content, by_record, may_be_document
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml


@pytest.mark.parametrize(
    ("keys", "formats"),
    [
        ("input ideal", ["openai-evals"]),
        ("input target", ["inspect"]),
        ("input choices", ["inspect"]),
        ("input expected_output retrieval_context", ["deepeval"]),
        ("input expectedOutput", ["deepeval"]),
        ("scenario expected_outcome turns", ["deepeval"]),
        ("input expected_output", []),
        ("input ideal target", ["inspect", "openai-evals"]),
        ("id input target assert", []),
        ("id input actual_output evaluators", []),
        ("question answer", []),
    ],
)
def test_a_format_is_told_by_keys_that_only_it_has(keys: str, formats: list[str]) -> None:
    assert sorted(claim.name for claim in by_record(keys.split())) == formats


@pytest.mark.parametrize(
    ("name", "text", "is_other"),
    [
        ("promptfoo-notes.eval.yaml", "target: echo\nnonsense: 1\ntests: [{id: a, input: a}]\n", False),
        ("a.yaml", "targets: [echo]\nprompts: [a]\nnonsense: 1\ntests: [{id: a, input: a}]\n", False),
        ("a.yaml", "targets: [echo]\nprompts: [a]\ntests: [{vars: {x: 1}}]\n", True),
        ("promptfoo-notes.yaml", "providers: [echo]\nprompts: [a]\ntests: [{id: a, input: a}]\n", True),
    ],
)
def test_a_document_is_another_tools_by_its_keys(name: str, text: str, *, is_other: bool) -> None:
    data = text.encode()
    root = read_yaml(name, data, Report()).value
    assert root is not None
    assert (may_be_document(name, data) and bool(by_content(name, root, data))) == is_other
