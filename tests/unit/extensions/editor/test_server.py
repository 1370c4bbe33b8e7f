"""Positions and changes as editors count them."""

from lsprotocol import types
from pygls.workspace import PositionCodec

from agentv.extensions.editor.server import changed_text

TEXT = "a\u2028\u2029b\x85\x0c\r\n🎉x\ry\n\n"


def typed(text: str, start: tuple[int, int], end: tuple[int, int], new: str) -> str:
    change = types.TextDocumentContentChangePartial(types.Range(types.Position(*start), types.Position(*end)), new)
    return changed_text(text, [change], PositionCodec())


def test_lines_end_where_the_protocol_says_and_nowhere_else() -> None:
    assert typed(TEXT, (1, 2), (1, 3), "z") == TEXT.replace("x", "z")
    assert typed(TEXT, (0, 3), (0, 4), "z") == TEXT.replace("b", "z")
    assert typed(TEXT, (2, 0), (2, 1), "") == TEXT.replace("y", "")
    assert typed(TEXT, (1, 3), (2, 0), " ") == TEXT.replace("\r" + "y", " y")
    assert typed(TEXT, (0, 99), (0, 99), "z") == TEXT.replace("\r\n", "z\r\n")
    assert typed(TEXT, (99, 0), (99, 5), "z") == TEXT + "z"
    assert typed(typed("", (0, 0), (0, 0), "é\n"), (1, 0), (1, 0), "b") == "é\nb"


def test_changes_follow_each_other() -> None:
    first = types.TextDocumentContentChangeWholeDocument("ab")
    second = types.TextDocumentContentChangePartial(types.Range(types.Position(0, 1), types.Position(0, 2)), "c")
    assert changed_text("x", [first, second], PositionCodec()) == "ac"
