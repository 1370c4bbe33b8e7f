import pytest

from agentv.matching.patterns import JAVASCRIPT, PatternError, compiled

FOUND = [
    ("^\\d+$", "12\n", False),
    ("^\\d+$", "١٢", False),
    ("^\\d+$", "12", True),
    ("^\\w+$", "é", False),
    ("^\\s$", "\ufeff", True),
    ("^\\s$", "\x1c", False),
    ("^[\\S]$", "\xa0", False),
    ("^[^\\s]$", "\ufeff", False),
    ("^[\\w-a]+$", "`", False),
    ("^\\p{L}+$", "äé", True),
    ("\\bfoo\\b", "éfooé", True),
    ("\\Bfoo", "éfooé", False),
    ("a{", "a{", True),
    ("^a{2,}?$", "aaa", True),
    ("^(?<y>\\d{4})-\\k<y>$", "2020-2020", True),
    ("^[[:alpha:]]$", "a", False),
    ("^[[:alpha:]]$", ":]", True),
    ("^\\u00e9$", "é", True),
    ("^\\u{1F600}$", "😀", True),
    ("^\\uD83D\\uDE00$", "😀", True),
    ("^\\x41\\t\\0$", "A\t\x00", True),
    ("^.$", "\u2028", False),
    ("^[^]$", "\n", True),
    ("[]", "a", False),
    ("^[a&&b]$", "&", True),
    ("^a|b$", "b\n", False),
    ("^\\cA$", "\x01", True),
    ("^[\\b]$", "\x08", True),
    ("^(a)\\1$", "aa", True),
    ("^(a)\\1$", "a", False),
    ("^([\"'])?b\\1$", "b", True),
    ("^([\"'])?b\\1$", "'b", False),
    ("^(?<q>[\"'])?b\\k<q>$", "b", True),
    ("^]$", "]", True),
    ("^(?=.*\\d)(?=.*[a-z]).{8,}$", "abcdefg1", True),
    ("(?<!a)b", "ab", False),
    ("^[~||]$", "|", True),
    ("^[+--/]+$", "+,-/", True),
    ("^[a-c--/]+$", "b./", True),
    ("^[\\d-/]+$", "1-/", True),
    ("^[a-\\d]+$", "a-1", True),
]


@pytest.mark.parametrize(("pattern", "text", "found"), FOUND)
def test_a_pattern_means_what_it_means_in_javascript(pattern, text, found):
    assert (compiled(pattern, JAVASCRIPT).search(text) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "flags", "text", "found"),
    [
        ("ABC", "i", "abc", True),
        ("^b$", "m", "a\nb\nc", True),
        ("a.b", "s", "a\nb", True),
        ("a.b", "", "a\nb", False),
        ("ß", "i", "SS", False),
    ],
)
def test_flags(pattern, flags, text, found):
    assert (compiled(pattern, flags + JAVASCRIPT).search(text) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"\A\d+\Z", "write ^"),
        (r"\d\Z", "write $"),
        ("a++", "nothing to repeat"),
        ("a{2}+", "nothing to repeat"),
        ("(?i)a", "begins no group"),
        ("(?P<a>x)", "begins no group"),
        (r"\h", "means nothing"),
        (r"\u{110000}", "no character"),
        ("(a", "missing"),
        ("[a", "unterminated"),
        ("\\", "backslash"),
    ],
)
def test_what_javascript_has_not_is_no_pattern(pattern, reason):
    with pytest.raises(PatternError, match=reason.replace("$", r"\$").replace("^", r"\^")):
        compiled(pattern, JAVASCRIPT)
