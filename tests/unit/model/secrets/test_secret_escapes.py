"""Letters that are spelled out, and where they are written."""

from __future__ import annotations

from itertools import product

import pytest

from agentv.model.secrets.secret_escapes import Unescaped, unescaped


@pytest.mark.parametrize(
    ("written", "reads"),
    [
        ("%41%7a%7A", "Azz"),
        ("&#65;&#0065;&#x41;&#X0041;", "AAAA"),
        ("&amp;#65;&amp;amp;#x41;", "AA"),
        ("\\u0041 \\\\u0041 \\\\\\\\x41", "A A A"),
        ("\\u{41}\\u{000041}\\x41", "AAA"),
        ("\\\" \\' \\/ \\\\\\/", "\" ' / /"),
        ("&#x10FFFF;&#xE000;&#xD7FF;", "\U0010ffff\ue000\ud7ff"),
        ("\x1b[1;31mre\x1b[0md\x1b[m", "red"),
        ("a\u200bb\xadc\0d\u202ee\u2066f\ufeffg", "abcdefg"),
    ],
)
def test_a_text_reads_as_its_escapes_say(written, reads):
    assert Unescaped(written).text == reads
    assert unescaped(written).text == reads


@pytest.mark.parametrize(
    "text",
    ["%80 %4 %zz", "&#1114112; &#x110000; &#65 &65;", "\\ud800 &#xD800; &#xDFFF; \\udfff", "\\xff \\u41 \\U0041"],
)
def test_what_names_no_letter_stays_as_it_is_written(text):
    assert Unescaped(text).text == text


def test_a_text_with_nothing_spelled_out_needs_no_reading():
    for text in ("", "plain", "100% & more", "\\n"):
        assert unescaped(text) is None


def test_each_letter_is_found_where_it_is_written():
    spelled = [("a", "a"), ("é", "é"), ("%41", "A"), ("\u200b", ""), ("&#66;", "B"), ("\\u0043", "C")]
    wrong = []
    for pieces in product(spelled, repeat=4):
        read = Unescaped("".join(written for written, _ in pieces))
        places, end = [], 0
        for written, letter in pieces:
            if letter:
                places.append((end, end + len(written)))
            end += len(written)
        found = [read.written(at, at + 1) for at in range(len(read.text))]
        whole = [(read.written(0, len(read.text)), (places[0][0], places[-1][1]))] if places else []
        if found != places or any(one != other for one, other in whole):
            wrong.append((pieces, found, places))
    assert wrong == []
