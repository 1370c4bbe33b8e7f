"""Texts that an editor inserts into YAML are read back unchanged."""

import pytest

from agentv.authoring.source.nodes import plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.errors import Diagnostic
from agentv.extensions.editor.answers import in_yaml, quick_fix
from agentv.model.values.values import Span

TEXTS = (
    "refund: #1", "[abc]", "a # b", "it's", 'say "hi"', "{a}", "a, b", "5", "yes", "~", "- a", "? a", "&x", "*x", "!t",
    "|", "a:", ":a", "'", "\\n", "x\x07", "a\u2028b", "a\x85b", "日本 🎉", " a ", "", "% a", "@a", "`", "---", "1e3", "<<",
)  # fmt: skip


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_a_text_is_read_as_itself_in_every_place(quote: str) -> None:
    for text in TEXTS:
        word = in_yaml(text, quote)
        yaml = f"- {word}\n- {{k: {word}, l: [{word}]}}\n- k: {word}\n  {word}: 1\n"
        report = Report()
        root = read_yaml("a.yaml", yaml.encode(), report).value
        assert root is not None, (yaml, report.diagnostics)
        key = {"k": text, text: 1}
        assert plain(root) == [text, {"k": text, "l": [text]}, key], yaml


@pytest.mark.parametrize(
    ("line", "text"), [("on: refnd", '"refund: #1"'), ("on: 'refnd'", "'refund: #1'"), ('on: "refnd"', '"refund: #1"')]
)
def test_a_quick_fix_writes_a_text_that_is_read_as_the_word(line: str, text: str) -> None:
    span = Span("a.yaml", 1, 5, 1, len(line) + 1)
    fix = quick_fix(Diagnostic("unknown-case", "no case 'refnd'", span, hint="did you mean 'refund: #1'?"), line)
    assert fix.text == text


def test_another_key_for_a_value_is_no_quick_fix() -> None:
    span = Span("a.yaml", 1, 10, 1, 15)
    found = Diagnostic("bad-value", "'a.csv' looks like cases", span, hint="did you mean 'tests: a.csv'?")
    assert quick_fix(found, "dataset: a.csv") is None
