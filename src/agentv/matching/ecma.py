r"""Translate regular expressions of ECMA-262 (JavaScript, JSON Schema) for the `regex` module.

The differences that matter: `$` matches only at the very end, never before a last newline; `\d`, `\w` and `\b` are
ASCII-only; `\s` is all white space of Unicode; a dot does not match four kinds of line ends. Syntax that only `regex`
has is an error, since it would not mean what the author thinks.
"""

from __future__ import annotations

import re
import sys
from typing import NoReturn

from agentv.model.values.values import lazy_pattern

_DIGIT = "0-9"
_WORD = "A-Za-z0-9_"
_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_EDGE = rf"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_NO_EDGE = rf"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))"
_SEVERAL = (*_CLASSES.values(), "[^", r"\p", r"\P")
"""Beginnings of a class in a set; any other member is a single character, which may begin or end a range."""
_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!")

_ESCAPE = lazy_pattern(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u\{(?P<point>[0-9a-fA-F]{1,6})\}|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})"
    r"|c(?P<control>[A-Za-z])|k<(?P<name>\w+)>|(?P<property>[pP]\{[\w=]+\})|(?P<number>[1-9]\d*)|(?P<one>.))",
    re.DOTALL | re.ASCII,
)
_COUNT = lazy_pattern(r"\{\d+(?:,\d*)?\}", re.ASCII)
_NAMED = lazy_pattern(r"\(\?<(?P<name>[A-Za-z_$][\w$]*)>")


def translate(pattern: str, flags: str = "") -> str:
    """Return the equivalent expression for `regex`.

    Args:
        pattern: expression in ECMA-262 syntax, read as with the flag `u`.
        flags: JavaScript flags: `i` ignores case, with `m` ^ and $ match at lines, with `s` a dot matches line ends.

    Raises:
        ValueError: the pattern is not a valid expression.
    """
    return _Translation(pattern, flags).translate()


class _Translation:
    """A translation in progress. `_at`: where the next part of the pattern begins."""

    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        self._flags = flags
        self._at = 0

    def translate(self) -> str:
        # no full case folding: with `i`, ß must not match SS
        parts = ["(?V1-f)" if "i" in self._flags else "(?V1)"]
        while self._at < len(self._pattern):
            parts.append(self._part())
        return "".join(parts)

    def _part(self) -> str:  # noqa: PLR0911  # one return for each kind of part
        letter = self._pattern[self._at]
        if letter == "\\":
            return self._escape(inside=False)
        if letter == "[":
            return self._set()
        if letter == "(":
            return self._group()
        if letter in "*+?{":
            return self._repetition()
        self._at += 1
        if letter == "$":
            return r"(?=[\n\r\u2028\u2029]|\Z)" if "m" in self._flags else r"\Z"
        if letter == "^":
            return r"(?:\A|(?<=[\n\r\u2028\u2029]))" if "m" in self._flags else r"\A"
        if letter == ".":
            return r"[\s\S]" if "s" in self._flags else r"[^\n\r\u2028\u2029]"
        return letter if letter in "|)" else re.escape(letter)

    def _group(self) -> str:
        rest = self._pattern[self._at : self._at + 4]
        opening = next((one for one in _GROUPS if rest.startswith(one)), None)
        if opening is None and (named := _NAMED.match(self._pattern, self._at)) is not None:
            self._at = named.end()
            return f"(?P<{named['name'].replace('$', '_S_')}>"
        if opening is None and rest.startswith("(?"):
            self._refuse(f"'{rest[:3]}' begins no group in JavaScript's syntax")
        self._at += len(opening or "(")
        return opening or "("

    def _repetition(self) -> str:
        count = _COUNT.match(self._pattern, self._at)
        if self._pattern[self._at] == "{" and count is None:
            self._at += 1
            return r"\{"
        found = count[0] if count is not None else self._pattern[self._at]
        self._at += len(found)
        if self._pattern.startswith("?", self._at):
            found += "?"
            self._at += 1
        following = self._pattern[self._at : self._at + 1]
        if following and (following in "*+?" or _COUNT.match(self._pattern, self._at)):
            self._refuse(f"nothing to repeat before '{following}'")
        return found

    def _set(self) -> str:
        """Translate a set in brackets; characters that only `regex` treats as special are escaped."""
        self._at += 1
        inverted = self._pattern.startswith("^", self._at)
        self._at += inverted
        parts: list[str] = []
        while not self._pattern.startswith("]", self._at):
            first = self._member()
            begins = self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at)
            if begins and not first.startswith(_SEVERAL):
                self._at += 1
                last = self._member()
                first += rf"\-{last}" if last.startswith(_SEVERAL) else f"-{last}"
            parts.append(first)
        self._at += 1
        if not parts:
            return r"[\s\S]" if inverted else "(?!)"
        return f"[{'^' if inverted else ''}{''.join(parts)}]"

    def _member(self) -> str:
        """Translate one character or class of a set."""
        if self._at >= len(self._pattern):
            self._refuse("unterminated character set")
        if self._pattern[self._at] == "\\":
            return self._escape(inside=True)
        self._at += 1
        return re.escape(self._pattern[self._at - 1])

    def _escape(self, *, inside: bool) -> str:  # noqa: PLR0911  # one return for each kind of escape
        found = _ESCAPE.match(self._pattern, self._at)
        if found is None:
            self._refuse("a backslash at the end")
        self._at = found.end()
        character = _character(found)
        if character is not None:
            return re.escape(character)
        if found["name"]:  # a group without a match is empty, here and by number below
            return f"(?({found['name']})(?P={found['name']})|)"
        if found["property"]:
            return found[0]
        if found["number"]:
            return f"(?({found['number']}){found[0]}|)" if not inside else self._refuse(f"'{found[0]}' in a set")
        letter = found["one"]
        if letter.lower() in _CLASSES:
            return _class(letter, inside=inside)
        if letter == "b" and inside:
            return r"\x08"
        if letter in "bB" and not inside:
            return _EDGE if letter == "b" else _NO_EDGE
        if letter.isalnum():
            advice = {"A": "; write ^", "Z": "; write $", "z": "; write $"}.get(letter, "")
            self._refuse(f"'\\{letter}' means nothing in JavaScript's syntax{advice}")
        return re.escape(letter)

    def _refuse(self, message: str) -> NoReturn:
        raise ValueError(f"{message} at position {self._at}")


_LETTERS = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}


def _character(found: re.Match[str]) -> str | None:
    """Return the character that an escape stands for, or None if it is a class, a reference or a boundary."""
    if found["high"]:
        return bytes.fromhex(found["high"] + found["low"]).decode("utf-16-be")
    if digits := found["point"] or found["four"] or found["two"]:
        if int(digits, 16) > sys.maxunicode:
            raise ValueError(f"'{found[0]}' is no character")
        return chr(int(digits, 16))
    if found["control"]:
        return chr(ord(found["control"]) % 32)
    return _LETTERS.get(found["one"] or "")


def _class(letter: str, *, inside: bool) -> str:
    letters = _CLASSES[letter.lower()]
    if letter.islower():
        return letters if inside else f"[{letters}]"
    return f"[^{letters}]"
