"""Finding secrets, and pieces of them, in text: one pass over it, however many secrets there are.

Every stretch of eight bytes of every form of a secret is known. Whatever holds eight bytes of one also holds four of
them at an offset that is a multiple of four, so that a text is first read as numbers of four bytes, which are looked up
in a set; only where one is found is it looked at closely.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain

from agentv.model.secrets.secret_escapes import unescaped
from agentv.model.secrets.secret_forms import encoded_forms, spaced_forms, written_forms
from agentv.model.values.lazy_pattern import lazy_pattern

PIECE = 8
"""Bytes of a secret that are taken out wherever they stand, if they do not read as ordinary text."""

_WORDY_PIECE = 12
"""Bytes of a secret that are taken out although they read as ordinary text, as those of a passphrase do."""

_QUAD = 4

_WINDOW = 1 << 14
"""Bytes that are looked through at once. Four hexadecimal digits of a secret also stand in some hash among many: in a
long text nearly all of them do, and each is then searched for in all of it."""

_COMMON, _WORDY, _TELLING = range(3)
"""What a stretch says by itself: it stands in much ordinary text too (`https://`); it could; it does not."""

_PUBLIC = lazy_pattern(
    rb"sk-ant-(?:api|admin)\d\d-|sk-(?:proj|svcacct|admin)-|sk-or-v1-|github_pat_|eyJ[\w-]+\.|-+BEGIN [A-Z ]+-+|AIzaSy"
)
"""How keys of one kind all begin."""

_STRUCTURED = lazy_pattern(rb".*://|\s*[\[{]|/|.*-----BEGIN |eyJ|.*/.*/", re.DOTALL)
"""Values of which only some parts are secret: URLs, JSON, paths, certificates, JSON Web Tokens."""

_CUT_BEHIND = lazy_pattern(rb"(?:\A|[\n\"]|\\n|\xe2\x80\xa6\]?|\.\.\.\]?)\s*['\"]?\Z")
_CUT_AHEAD = lazy_pattern(rb"['\"]?\s*(?:\Z|[\n\"]|\\n|\[?\xe2\x80\xa6|\[?\.\.\.)")
"""Where a text was, or may have been, cut: its ends, those of its lines, and marks that say so."""

_MIXED = lazy_pattern(
    rb"[A-Za-z].*[0-9]|[0-9].*[A-Za-z]|[A-Z].*[a-z].*[A-Z].*[a-z]|[a-z].*[A-Z].*[a-z].*[A-Z]", re.DOTALL
)
_LONE_DIGIT = lazy_pattern(rb"[^0-9A-Z]*[0-9][^0-9A-Z]*")
_ORDINARY = lazy_pattern(rb"[\w\x80-\xff ./:-]+")
_FEW_SIGNS = 2

_HASHES = lazy_pattern(rb"[0-9a-f]{32,}|[0-9A-F]{32,}")
"""Hashes, such as the keys of rows. Among those of 100,000 rows, some digits are also in the hex form of a secret."""

_HASH = 128
"""Digits of the longest usual hash."""

_LEVELS = 3
"""Of escapes that are read in a JSON text: its own, and those of what it holds."""

_MARK = 8
"""Bytes beside a piece in which such a mark stands."""


class SecretPieces:
    """The values of secrets in all their forms.

    Args:
        secrets: values that are searched for, each of at least `PIECE` characters.
    """

    __slots__ = ("_pieces", "_quads", "_short", "_wholes")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._pieces: dict[bytes, int] = {}
        wholes: set[bytes] = set()
        quads: set[int] = set()
        spaced: set[bytes] = set()
        short: list[bytes] = []
        for secret in secrets:
            if len(secret) < _WORDY_PIECE:
                short.append(secret.encode(errors="replace"))
            structured = _STRUCTURED.match(secret.encode(errors="replace")) is not None
            for form in _distinct(written_forms(secret)):
                if self._learn(form, _COMMON if structured else _WORDY) < _TELLING:
                    wholes.add(form)
                quads.update(_quads_of(form))
            for form in _distinct(encoded_forms(secret)):
                if structured and self._learn(form, _COMMON) < _TELLING:
                    wholes.add(form)
                elif not structured:
                    self._pieces.update(dict.fromkeys(_pieces_of(form), _TELLING))
                quads.update(_quads_of(form))
            for form in _distinct(spaced_forms(secret)):
                spaced.update(_pieces_of(form))
                wholes.add(form)
                quads.update(_quads_of(form))
        self._pieces = dict.fromkeys(spaced, _WORDY) | self._pieces
        self._wholes = tuple(wholes)
        self._short = tuple(short)
        self._quads = frozenset(quads)

    def _learn(self, form: bytes, least: int) -> int:
        """Take up the stretches of a form; the most that one of them says."""
        public = _PUBLIC.match(form)
        common = public.end() - PIECE if public is not None else -1
        most, known = _COMMON, self._pieces
        for at, piece in enumerate(_pieces_of(form)):
            says = _COMMON if at <= common else max(least, _weight(piece, strict=least == _COMMON))
            most = max(most, says)
            if says > known.get(piece, -1):
                known[piece] = says
        return most

    def stand_in(self, line: bytes, *, skip_hashes: bool = False) -> bool:
        """Whether a secret, or a piece of one, stands in a JSON text.

        Args:
            line: the text.
            skip_hashes: a piece of fewer than 12 digits within a hash is none, unless it is a whole secret.
        """
        if self._contained_in(line, skip_hashes):
            return True
        text = line.decode("utf-8", "surrogateescape")
        for _ in range(_LEVELS):
            read = unescaped(text)
            if read is None:
                return False
            text = read.text
            if self._contained_in(text.encode("utf-8", "surrogatepass"), skip_hashes):
                return True
        return False

    def _contained_in(self, data: bytes, skip_hashes: bool) -> bool:
        if not self._may_stand_in(data):
            return False
        return any(not (skip_hashes and self._is_chance(data, *span)) for span in self._spans(data))

    def _is_chance(self, data: bytes, first: int, last: int) -> bool:
        """Whether a stretch is a few digits of a hash."""
        if last - first >= _WORDY_PIECE or any(value in data[first:last] for value in self._short):
            return False
        begins = max(first - _HASH, 0)
        hashes = _HASHES.finditer(data[begins : last + _HASH])
        return any(found.start() <= first - begins and last - begins <= found.end() for found in hashes)

    def replaced(self, text: str, by: str) -> str:
        """The text with `by` in the place of every secret, and of every piece of one, however it is spelled."""
        if len(text) < PIECE and text.isascii():
            return text
        clean = _without(text, self.stretches(text), by)
        read = unescaped(clean)
        if read is None:
            return clean
        return _without(clean, (read.written(first, last) for first, last in self.stretches(read.text)), by)

    def stretches(self, text: str) -> Iterator[tuple[int, int]]:
        """Where in a text to take something out, by letters."""
        data = text.encode("utf-8", "surrogatepass")
        if not self._may_stand_in(data):
            return
        seen = letters = 0
        for first, last in self._spans(data):
            begins, ends = _whole_letters(data, max(first, seen), last)
            letters += len(data[seen:begins].decode("utf-8", "surrogatepass"))
            length = len(data[begins:ends].decode("utf-8", "surrogatepass"))
            yield letters, letters + length
            letters += length
            seen = ends

    def _may_stand_in(self, data: bytes) -> bool:
        """Whether any stretch of a secret is there; what it says decides later."""
        if len(data) <= _WINDOW:
            return self._stand_within(data)
        return any(self._stand_within(data[at : at + _WINDOW + PIECE - 1]) for at in range(0, len(data), _WINDOW))

    def _stand_within(self, data: bytes) -> bool:
        for quad in self._quads.intersection(_aligned(data)):
            needle = quad.to_bytes(_QUAD, sys.byteorder)
            at = data.find(needle)
            while at >= 0:
                if any(data[one : one + PIECE] in self._pieces for one in range(max(at - _QUAD, 0), at + 1)):
                    return True
                at = data.find(needle, at + 1)
        return False

    def _spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where to take something out: first and last offset, in their order, none within another."""
        pieces = self._pieces
        starts = [at for at in range(len(data) - PIECE + 1) if data[at : at + PIECE] in pieces]
        for first, last in _runs(starts):
            if self._reveals_secret(data, first, last):
                yield first, last

    def _reveals_secret(self, data: bytes, first: int, last: int) -> bool:
        """Whether a stretch that secrets hold is to be taken out, and is not just a word that one of them holds too."""
        stretch = data[first:last]
        most = max(self._pieces.get(stretch[at : at + PIECE], _COMMON) for at in range(len(stretch) - PIECE + 1))
        if most == _TELLING or any(whole in stretch for whole in self._wholes):
            return True
        if most == _COMMON:
            return False
        return (
            len(stretch) >= _WORDY_PIECE
            or _CUT_BEHIND.search(data[max(first - _MARK, 0) : first], 0 if first < _MARK else 1) is not None
            or _CUT_AHEAD.match(data[last : last + _MARK]) is not None
        )


def _without(text: str, stretches: Iterable[tuple[int, int]], by: str) -> str:
    pieces: list[str] = []
    end = 0
    for first, last in stretches:
        pieces += (text[end:first], by)
        end = last
    return "".join((*pieces, text[end:])) if pieces else text


def _runs(starts: list[int]) -> Iterator[tuple[int, int]]:
    """Stretches that overlap or touch, as one."""
    first = last = -1
    for start in starts:
        if start > last:
            if last >= 0:
                yield first, last
            first = start
        last = start + PIECE
    if last >= 0:
        yield first, last


def _distinct(forms: Iterable[str]) -> set[bytes]:
    encoded = (form.encode(errors="replace") for form in forms)
    return {form for form in encoded if len(form) >= PIECE}


def _pieces_of(form: bytes) -> list[bytes]:
    return [form[at : at + PIECE] for at in range(len(form) - PIECE + 1)]


def _quads_of(form: bytes) -> Iterator[int]:
    return chain.from_iterable(map(_aligned, (form, form[1:], form[2:], form[3:])))


def _aligned(data: bytes) -> memoryview[int]:
    """Four bytes at a time, as numbers."""
    return memoryview(data)[: len(data) - len(data) % _QUAD].cast("I")


def _weight(piece: bytes, *, strict: bool) -> int:
    """What a stretch says: letters and digits mixed, or many signs, are no ordinary text.

    `strict`: of a value such as a URL, in which a lone digit (`/v1/`) says nothing.
    """
    if strict and _LONE_DIGIT.fullmatch(piece) is not None:
        return _COMMON
    if _MIXED.search(piece) is not None:
        return _TELLING
    return _TELLING if len(set(_ORDINARY.sub(b"", piece))) > _FEW_SIGNS else _COMMON


def _whole_letters(data: bytes, first: int, last: int) -> tuple[int, int]:
    """A stretch that ends where letters of UTF-8 do."""
    while first and _continues(data, first):
        first -= 1
    while last < len(data) and _continues(data, last):
        last += 1
    return first, last


def _continues(data: bytes, at: int) -> bool:
    return data[at] & 0xC0 == 0x80
