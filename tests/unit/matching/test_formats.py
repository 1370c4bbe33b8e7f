import pytest

from agentv.matching.formats import FORMATS

TEXTS = {
    "date": (
        ["2024-12-31", "2024-02-29"],
        ["31/12/2024", "2023-02-29", "2024-13-01", "2024-1-1", "20241231", "2024-12-31\n", "٢٠٢٤-12-31", ""],
    ),
    "date-time": (
        ["2024-12-31T23:59:60Z", "1998-12-31t15:59:60.123-08:00", "2024-01-01T00:00:00+01:00"],
        [
            "2024-01-01", "2024-01-01 00:00:00Z", "2024-01-01T00:00:00", "2024-01-01T24:00:00Z",
            "1998-12-31T23:58:60Z", "2024-01-01T00:00:00+24:00", "06/19/1963 08:30:06 PST",
        ],
    ),
    "time": (
        ["08:30:06Z", "08:30:06.28-08:00", "23:59:60Z"],
        ["08:30:06", "8:30:06Z", "12:00:00+00", "01:02:03+24:00", "22:59:60Z"],
    ),
    "duration": (
        ["P4DT12H30M5S", "P4Y", "PT0S", "P1M", "PT1M", "PT36H", "P2W"],
        ["PT1D", "P", "P1YT", "P2D1Y", "P1Y2W", "4DT12H", "P1D2H", ""],
    ),
    "email": (
        ["a@b.c", "te~st@example.com", '"joe bloggs"@example.com', "joe@[127.0.0.1]", "joe@[IPv6:::1]", "a@localhost"],
        [
            "nobody", "a@", "@b.c", "a b@c.d", ".test@e.com", "te..st@e.com", "a@b@c.com", "a@-x.com",
            "joe@[1.2.3.256]", "joe@invalid=dom.com", "a@b.c\n", "",
        ],
    ),
    "idn-email": (["실례@실례.테스트", "a@b.c"], ["2962", "실례"]),
    "hostname": (
        ["www.example.com", "xn--4gbwdl.xn--wgbh1c", "localhost", "1host"],
        [
            "-bad", "not_valid", "a..b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ".com",
            "", "a b", "例え.jp",
        ],
    ),
    "idn-hostname": (["실례.테스트", "example.com"], ["〮실례.테스트", "-hello", ""]),
    "ipv4": (
        ["192.168.0.1"],
        ["127.0.0.0.1", "256.1.1.1", "127.0", "0x7f000001", "01.1.1.1", "1২7.0.0.1", "192.168.1.0/24", ""],
    ),
    "ipv6": (
        ["::1", "::abcd:ef12", "::ffff:192.168.0.1"],
        ["12345::", "1:1:1:1:1:1:1:1:1", "::laptop", "fe80::a%eth1", "127.0.0.1", ""],
    ),
    "uri": (
        [
            "http://foo.bar/?q=Test%20URL", "http://foo.bar/baz#qux", "mailto:a@b.c", "urn:oasis:names", "tel:+1-816",
            "ldap://[2001:db8::7]/c=GB?x?one", "http://user:p@x.y:80/", "http://x.y", "file:///etc",
            "http://foo.bar/?foo=bar",
        ],
        [
            "//foo.bar", "/abc", "\\\\WINDOWS\\x", "abc", ":// no", "http:// x", "bar,baz:x y",
            "https://[@example.org/test.txt", "http://x/{a}", "http://example.org/t[]", "http://ü.de", "",
            "http://x/%zz",
        ],
    ),
    "uri-reference": (
        ["http://a", "//foo.bar/?baz", "/abc", "abc", "#frag", "", "../a?b"],
        ["\\\\WIN\\x", "#frag\\ment", "a b"],
    ),
    "iri": (
        ["http://ƒøø.ßår/?∂éœ=πîx", "http://[2001:0db8::7334]"],
        ["http://2001:0db8:85a3:0000:0000:8a2e:0370:7334", "/abc", "âππ"],
    ),
    "iri-reference": (["//ƒøø", "/âππ", "#ƒ"], ["\\\\WINDOWS", "#ƒräg\\mênt"]),
    "uri-template": (
        ["http://example.com/dictionary/{term:1}/{term}", "http://e.com/{a,b*}", "plain", ""],
        ["http://e.com/{term:1}/{term", "{}", "{a b}"],
    ),
    "uuid": (
        ["2EB8AA08-AA98-11EA-B4AA-73B441D16380", "00000000-0000-0000-0000-000000000000"],
        [
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "2eb8aa08aa9811eab4aa73b441d16380",
            "xeb8aa08-aa98-11ea-b4aa-73b441d16380", "",
        ],
    ),
    "json-pointer": (["", "/", "/foo/0", "/a~1b", "/ "], ["/foo~", "a", "#/a", "/~2", "/~0~"]),
    "relative-json-pointer": (["1", "0/foo/bar", "2/0/baz", "0#"], ["/foo", "-1/a", "0##", "01/a", "", "٠"]),
    "regex": (["([abc])+\\s+$"], ["^(abc]", "\\Z"]),
}  # fmt: skip
"""Format → valid texts and invalid texts."""


def test_every_format_is_tried():
    assert TEXTS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_a_format(name):
    right, wrong = TEXTS[name]
    assert [text for text in right if not FORMATS[name](text)] == []
    assert [text for text in wrong if FORMATS[name](text)] == []


@pytest.mark.parametrize("piece", ["a.", "a@", "1Y", "/", "{a", "http://a:", "-"])
def test_long_texts_take_no_long_time(piece):
    for name in FORMATS:
        assert FORMATS[name](piece * 20_000 + "\x00") in (True, False)
