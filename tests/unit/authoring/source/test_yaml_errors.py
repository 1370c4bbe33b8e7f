"""Where a file stops being YAML, and what is likely meant."""

import pytest

from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("a: @home\n", (1, 4), "cannot start any token", "quote a text that starts with @"),
        ("a: `x`\n", (1, 4), "cannot start any token", "quote a text that starts with `"),
        ("a: {{ b }} c\n", (1, 5), "a key must be text", "quote a text that starts with {{"),
        ("a: {% if b %}\n", (1, 5), "cannot start any token", "quote a text that starts with {{ or {%"),
        ('a: "\\ud83d"\n', (1, 7), "invalid Unicode character escape", "write the character itself"),
        ("a: 1\nb\n", (2, 1), "expected a key, but no ':' follows", None),
        ("a: [1,\n", (2, 1), "did not find expected node content", "a [ or { above is never closed"),
        ("a: x\x85b\n", (1, 5), "U+0085", 'in double quotes, write it as "\\u0085"'),
    ],
)
def test_the_place_and_the_likely_fix(text, place, message, hint):
    report = Report()
    assert read_yaml("file.yaml", text.encode(), report).value is None
    (found,) = report.diagnostics
    assert (found.span.line, found.span.column) == place
    assert message in found.message
    assert (hint in found.hint) if hint else found.hint is None
