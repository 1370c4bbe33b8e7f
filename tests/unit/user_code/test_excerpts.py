from __future__ import annotations

from agentv.user_code.excerpts import LONGEST, head, tail


def test_short_text_stays_as_it_is():
    assert head(b" two\nlines \n") == tail(b" two\nlines \n") == "two\nlines"


def test_long_text_is_cut_at_the_far_end():
    printed = b"a" * LONGEST + b"b" * LONGEST
    assert head(printed) == "a" * LONGEST + " …"
    assert tail(printed) == "… " + "b" * LONGEST


def test_what_is_cut_before_decoding_is_marked_too():
    assert head(b"\x07" * 10_000 + b"x").endswith("…")
    assert tail(b"x" + b"\x07" * 10_000).startswith("…")


def test_nothing_that_steers_a_terminal_is_left():
    assert tail(b"\x1b[31mred\x1b[0m \x1b]0;title\x07done\r\n\x00\x9bend") == "red done\n \ufffdend"
    assert tail("a\u202eb\u2066c".encode()) == "a b c"


def test_bytes_that_are_no_text_are_shown_as_such():
    assert tail(b"caf\xe9") == "caf\ufffd"
