from __future__ import annotations

import re

import pytest

from agentv.model.values.lazy_pattern import lazy_pattern


def test_a_pattern_finds_what_the_compiled_one_finds():
    text, lazy, compiled = "Ab, ab; AB", lazy_pattern("a(b)", re.IGNORECASE), re.compile("a(b)", re.IGNORECASE)
    assert lazy.findall(text) == compiled.findall(text) == ["b", "b", "B"]
    assert [one.span() for one in lazy.finditer(text)] == [one.span() for one in compiled.finditer(text)]
    assert (lazy.sub("x", text), lazy.split(text)) == (compiled.sub("x", text), compiled.split(text))
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    assert lazy.fullmatch(text) is None
    assert lazy_pattern(b"b+").search(b"abb")[0] == b"bb"


def test_nothing_is_compiled_before_its_use():
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("")
