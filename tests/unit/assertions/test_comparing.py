from operator import contains, eq

import pytest

from agentv.assertions.comparing import only_difference


def within(value, output):
    return contains(output, value)


@pytest.mark.parametrize(
    ("value", "output", "matches", "said"),
    [
        ("caf\u00e9", "a cafe\u0301 here", within, "only the Unicode normalisation (NFC, NFD) differs: "),
        ("caf\u00e9", "cafe\u0301", eq, "only the Unicode normalisation (NFC, NFD) differs: "),
        ("ab", "xa\u200bbx", within, "only invisible or similar characters differ (U+200B ZERO WIDTH SPACE): "),
        ("a b", "a\u00a0b", eq, "only invisible or similar characters differ (U+00A0 NO-BREAK SPACE): "),
        ("a\u00adb", "ab", eq, "only invisible or similar characters differ (U+00AD SOFT HYPHEN): "),
        ("ab", "\ufeffab", eq, "only invisible or similar characters differ (U+FEFF ZERO WIDTH NO-BREAK SPACE): "),
        ("\u2764\ufe0f", "\u2764", eq, "only invisible or similar characters differ (U+FE0F VARIATION SELECTOR-16): "),
        ("cafe", "caf\u00e9", within, ""),
    ],
)
def test_what_alone_differs(value, output, matches, said):
    assert only_difference(value, output, matches) == said
