"""Where a file stops being YAML, and what is likely meant."""

import pytest

from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ("a:\n\tb: 1\n", (2, 1), "found character that cannot start any token", "indent with spaces"),
        ("a: b: c\n", (1, 5), "mapping values are not allowed", "quote a text that contains ': '"),
        ("a: @home\n", (1, 4), "cannot start any token", "quote a text that starts with @"),
        ("a: `x`\n", (1, 4), "cannot start any token", "quote a text that starts with `"),
        ("a: {{ b }}\n", (1, 5), "a key must be text", "quote a text that starts with {{"),
        ("a: {{ b }} c\n", (1, 5), "a key must be text", "quote a text that starts with {{"),
        ("a: {% if b %}\n", (1, 5), "cannot start any token", "quote a text that starts with {{ or {%"),
        ('a: "\\ud83d"\n', (1, 7), "invalid Unicode character escape", "write the character itself"),
        ("x: 1\na: 'b\n", (2, 4), "the quote that starts here is never closed", None),
        ("a: 1\nb\n", (2, 1), "expected a key, but no ':' follows", None),
        ("a: 1\nb", (2, 1), "expected a key, but no ':' follows", None),
        ("a:\n  - 1\n b: 2\n", (3, 2), "that starts at line 1", "indent it by 4 spaces, like line 2"),
        ("a:\n  - b: 1\n   c: 2\n", (3, 4), "did not find expected '-'", "indent it by 4 spaces, like line 2"),
        ("a b\nc:\n", (2, 2), "mapping values are not allowed", "line 1 has no ':'"),
        ("a:b\n\nc:\n", (3, 2), "mapping values are not allowed", "missing after the ':' of line 1"),
        ("-a: b\n c: d\n", (2, 3), "mapping values are not allowed", "missing after the '-' of line 1"),
        ("a: “b: c”\n", (1, 6), "mapping values are not allowed", "use the quotes \" and ', not “ and ”"),
        ("a: don’t: c\n", (1, 9), "mapping values are not allowed", "quote a text that contains ': '"),
        ("a: 'don't'\n", (1, 9), "did not find expected key", "in single quotes, write an apostrophe as ''"),
        ('a: "b\nc: "d"\n', (2, 5), "did not find expected key", "look above for one that was not closed"),
        ("a: [b] c\n", (1, 8), "did not find expected key", "quote a text that starts with ["),
        ("a: *b* c\n", (1, 6), "while scanning an alias", "quote a text that starts with * or &"),
        ("a: |\nb\n", (2, 1), "no ':' follows", "indent the text more than the key in line 1"),
        ("a: 1\n...\nb: 2\n", (3, 1), "<document start>", "'...' ends the document"),
        ('{"a": "1" "b": 2}\n', (1, 11), "did not find expected ','", "a comma is missing before this"),
        ('{"a": [1,\n 2], "b": 3\n', (1, 1), "the { that starts here is never closed", None),
        ("a: [1\n", (1, 4), "the [ that starts here is never closed", None),
        ("a: [1,\n", (2, 1), "did not find expected node content", "a [ or { above is never closed"),
        ("a: ü\nb: \x07\n", (2, 4), "control characters are not allowed", None),
        ("a: ü\u2028b\n", (1, 5), "U+2028", 'in double quotes, write it as "\\u2028"'),
        ("-\ta: 1\n", (1, 2), "cannot start any token", "indent with spaces"),
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
