"""Characters that look like others, as plain ASCII: what a model reads alike must compare alike.

A short table of what Unicode's `confusables.txt` (UTS 39) lists for the letters and signs that a verdict consists of,
with what its compatibility forms leave out: enclosed letters, tag characters, digits of other scripts.
"""

from __future__ import annotations

import re
import unicodedata

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
"""Letter → those of other scripts, or of other styles, that look like it."""

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
"""Letters that have no shape."""

_ROWS = {"🅐": "A", "🅰": "A", "🇦": "A"}
"""The first of 26 letters in a row without compatibility forms, and what it is."""

_FIRST_TAG, _LAST_TAG = 0xE0020, 0xE007E
"""Tag characters: ASCII that nobody sees, and that models read."""

_BIDI_AND_MARKS = re.compile("[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]+")


def as_ascii(text: str) -> str:
    """The text with every character that looks like an ASCII one as that; what is invisible stays or goes."""
    if text.isascii():
        return text
    return _BIDI_AND_MARKS.sub("", unicodedata.normalize("NFKD", text.translate(_TABLE)).translate(_TABLE))


class _Table(dict[int, str]):
    """Characters as they are found, so that none is looked into twice."""

    def __missing__(self, code: int) -> str:
        self[code] = found = _plain(chr(code))
        return found


def _plain(one: str) -> str:
    if _FIRST_TAG <= ord(one) <= _LAST_TAG:
        return chr(ord(one) - 0xE0000)
    if one in _INVISIBLE_LETTERS:
        return ""
    digit = unicodedata.digit(one, None)
    return one if digit is None else str(digit)


def _table() -> _Table:
    table = _Table({code: chr(code) for code in range(128)})
    for plain, others in (*_LETTERS.items(), *_SIGNS.items()):
        table.update(dict.fromkeys(map(ord, others), plain))
    for first, plain in _ROWS.items():
        table.update({ord(first) + place: chr(ord(plain) + place) for place in range(26)})
    return table


_TABLE = _table()
