"""Normalize texts, since a judge may quote them without their escapes, entities, comments, tags or line numbers."""

from __future__ import annotations

import html
import re
import unicodedata

MAX_CHARACTERS = 5_000_000
"""Maximum number of characters of a text that are examined, half of them from its end."""

_LAYERS = 3
"""Maximum number of nested levels of escaping that are decoded."""

_CODE_POINT = re.compile(r"\\+(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))")
_PERCENT = re.compile(r"%([0-9a-fA-F]{2})")
_ESCAPED_SPACE = re.compile(r"\\+[nrtbf]")
_MAY_BE_ESCAPED = re.compile(r"&#?\w|\\|%[0-9a-fA-F]{2}")

_TAG = re.compile(r"<[^<>]{0,300}>")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,300}\)")
_LINE_COMMENT = re.compile(r"(?://|#|--).*$", re.MULTILINE)
_LINE_START = re.compile(
    r"""^[ \t]*(?:(?:[>|#*+•-]+|\(?L?\d{1,6}[ \t]*[.):|→\]–-]+|\d{1,6}(?=[ \t]+["'{}\[\]A-Za-z]|\t))[ \t]*)+""",
    re.MULTILINE,
)
_BLOCK_COMMENTS = (("/*", "*/"), ("<!--", "-->"))


def normal_forms(text: str) -> tuple[str, ...]:
    """Return the distinct normal forms of a text: plain, decoded, and without tags, comments and line numbers."""
    if len(text) > MAX_CHARACTERS:
        text = f"{text[: MAX_CHARACTERS // 2]}\n{text[-MAX_CHARACTERS // 2 :]}"
    plain = as_ascii(text)
    decoded = _decoded(plain)
    bare = _TAG.sub("", _without_blocks(decoded)) if "<" in decoded or "/*" in decoded else decoded
    unnumbered = _LINE_START.sub("", _LINK.sub(r"\1", bare) if "](" in bare else bare)
    uncommented = _LINE_COMMENT.sub("", bare)
    return tuple(dict.fromkeys((plain, decoded, bare, unnumbered, _LINE_START.sub("", uncommented))))


def _decoded(text: str) -> str:
    for _ in range(_LAYERS):
        if not _MAY_BE_ESCAPED.search(text):
            break
        text = _CODE_POINT.sub(_character, _ESCAPED_SPACE.sub("\n", text))
        text = as_ascii(html.unescape(_PERCENT.sub(lambda found: chr(int(found[1], 16)), text)))
    return text


def _character(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3], 16)
    return chr(code) if code <= 0x10FFFF else " "


def _without_blocks(text: str) -> str:
    """Return the text without block comments. A comment that is not closed is kept."""
    for opening, closing in _BLOCK_COMMENTS:
        pieces, start = [], 0
        while (found := text.find(opening, start)) >= 0 and (end := text.find(closing, found + len(opening))) >= 0:
            pieces.append(text[start:found])
            start = end + len(closing)
        text = "".join((*pieces, text[start:]))
    return text


_LETTERS = {
    "a": "аɑαᴀꭺ",
    "b": "Ьʙƅ",
    "c": "сϲᴄⲥꮯ",
    "d": "ԁᴅɗđꮷ",
    "e": "еεᴇҽɛꭼ",
    "f": "ꜰƒẝ",
    "g": "ɡɢցᶃ",
    "h": "һհʜħꮋ",
    "i": "іɪıιɩꭵ",
    "j": "јϳᴊյꭻ",
    "k": "кκᴋꮶ",
    "l": "ӏʟłⅼ",
    "m": "мᴍꮇ",
    "n": "ոɴηп",
    "o": "оοσօᴏøⲟ",
    "p": "рρᴘⲣꮲ",
    "q": "ԛզ",
    "r": "гʀᴦꭱ",
    "s": "ѕꜱƨꮪ",
    "t": "тτᴛŧꭲ",
    "u": "υսᴜ",
    "v": "ѵνᴠꮩ",
    "w": "ԝωաᴡꮃ",
    "x": "хχ",
    "y": "уγʏү",
    "z": "ᴢꮓ",
    "A": "АΑᎪꓮ",
    "B": "ВΒꓐ",
    "C": "СϹᏟꓚⲤ",
    "D": "ᎠꓓԀ",
    "E": "ЕΕᎬꓰ",
    "F": "Ϝꓝ",
    "G": "Ꮐꓖ",
    "H": "НΗᎻꓧⲎ",
    "I": "ІΙꓲӀ",
    "J": "ЈͿᎫꓙ",
    "K": "КΚᏦꓗ",
    "L": "Ꮮꓡ",
    "M": "МΜᎷꓟ",
    "N": "Νꓠ",
    "O": "ОΟՕꓳⲞ",
    "P": "РΡᏢꓑⲢ",
    "Q": "Ԛ",
    "R": "Ꭱꓣ",
    "S": "ЅՏᏚꓢ",
    "T": "ТΤᎢꓔ",
    "U": "Սꓴ",
    "V": "ѴᏙꓦ",
    "W": "ԜᎳꓪ",
    "X": "ХΧꓫ",
    "Y": "УΥᎩꓬҮ",
    "Z": "ΖᏃꓜ",
}
"""Letter → letters of other scripts or styles that look like it."""

_SIGNS = {
    ":": "ː˸։׃܃܄᛬꞉⁚∶ꓽ؛",
    ",": "‚،⸲、ꓹ٫",
    ".": "․۔܁。",
    "{": "❴⦃",
    "}": "❵⦄",
    "[": "❲〔【⟦〚",
    "]": "❳〕】⟧〛",
    "=": "꞊═⩵⹀゠🟰≡",
    "-": "−‐‑‒–—―⁃˗",
    "+": "➕",
    "<": "‹❮〈⟨",
    ">": "›❯〉⟩",
}

_INVISIBLE_LETTERS = "\u115f\u1160\u3164\uffa0"
"""Letters without a visible shape."""

_ROWS = {"🅐": "A", "🅰": "A", "🇦": "A"}
"""First character of each alphabet of 26 symbols that has no compatibility decomposition → its letter."""

_FIRST_TAG, _LAST_TAG = 0xE0020, 0xE007E
"""Tag characters: invisible copies of ASCII that models can read."""

_BIDI_AND_MARKS = re.compile("[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]+")


def as_ascii(text: str) -> str:
    """Return the text with characters that look like ASCII replaced by it. Invisible characters may be removed."""
    if text.isascii():
        return text
    return _BIDI_AND_MARKS.sub("", unicodedata.normalize("NFKD", text.translate(_TABLE)).translate(_TABLE))


class _Table(dict[int, str]):
    """Table for `str.translate` that computes each character's replacement once."""

    def __missing__(self, code: int) -> str:
        found = chr(code)
        digit = unicodedata.digit(found, None)
        if _FIRST_TAG <= code <= _LAST_TAG:
            found = chr(code - 0xE0000)
        elif found in _INVISIBLE_LETTERS:
            found = ""
        elif digit is not None:
            found = str(digit)
        self[code] = found
        return found


def _table() -> _Table:
    table = _Table({code: chr(code) for code in range(128)})
    for plain, others in (*_LETTERS.items(), *_SIGNS.items()):
        table.update(dict.fromkeys(map(ord, others), plain))
    for first, plain in _ROWS.items():
        table.update({ord(first) + place: chr(ord(plain) + place) for place in range(26)})
    return table


_TABLE = _table()
