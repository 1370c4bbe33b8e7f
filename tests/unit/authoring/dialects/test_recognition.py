import pytest

from agentv.authoring.dialects.recognition import by_content, may_be_document
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml


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
