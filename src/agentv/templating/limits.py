"""What a rendering may come to: errors, the environment, and limits on its size and time (SPEC section 6)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, thread_time
from types import FrameType
from typing import Any

from agentv.model.values.formatting import plural

LONGEST = 10_000_000
"""Characters that a rendering, or a value in it, may have."""

MOST = 200_000
"""Values that a list or mapping may hold, those inside it included."""

PLACEHOLDERS = 2_000
"""Placeholders of one text that need a template; plain names need none, however many they are."""

SECONDS = 2.0
"""Of computing that one rendering may take."""

BITS = 13_000
"""Of the largest whole number that `**` and `*` may make: Python writes no longer ones, and seven signs can ask for
one that takes minutes."""


class RenderError(Exception):
    """A text cannot be rendered.

    Attributes:
        code: `undefined-variable`, `unset-environment`, `untrusted-data` or `bad-template`.
        name: the variable or environment variable in question, where it is one.
        line: of the text, from 1, where its syntax is wrong and that is known.
    """

    def __init__(self, code: str, message: str, name: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.name = name
        self.line = line


class MissingItemError(RenderError):
    """A list is shorter than an expression supposes."""

    def __init__(self, items: Sequence[object], index: int, name: str | None = None) -> None:
        place, holder = (f"item {index}", "the list") if name is None else (f"{name}[{index}]", f"'{name}'")
        message = f"there is no {place}: {holder} has {plural(len(items), 'item')}"
        super().__init__("undefined-variable", message)
        self.items = items
        self.index = index

    def of(self, names: Mapping[str, object]) -> MissingItemError:
        """The same error with the name of the list, where it is a variable."""
        name = next((name for name, value in names.items() if value is self.items), None)
        return MissingItemError(self.items, self.index, name)


class Environment(Mapping[str, str]):
    """The environment, as `env`: a variable that is not set is its own kind of fault."""

    def __init__(self, values: Mapping[str, str], *, closed: bool = False) -> None:
        self._given = values
        self._closed = closed

    @property
    def _values(self) -> Mapping[str, str]:
        if self._closed:
            raise RenderError("untrusted-data", "data must not read the environment")
        return self._given

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __str__(self) -> str:
        raise RenderError("bad-template", "the expression must be a value, found the whole environment")

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@contextmanager
def limited() -> Iterator[None]:
    """End what the body runs with a RenderError after two seconds, by the clock and by the thread's own time."""
    until, computed = monotonic() + SECONDS, thread_time() + SECONDS

    def trace(_frame: FrameType, _event: str, _arg: object) -> Any:
        if monotonic() > until and thread_time() > computed:
            raise RenderError("bad-template", f"cannot render: it takes more than {SECONDS:g} seconds")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def joined(chunks: Iterable[str]) -> str:
    """The chunks as one text, which is not longer than it may be."""
    made, letters = [], 0
    for chunk in chunks:
        letters += len(chunk)
        refuse_long(letters)
        made.append(chunk)
    return "".join(made)


def refuse_long(letters: int) -> None:
    """Refuse a text of so many characters if it is too long."""
    if letters > LONGEST:
        raise RenderError("bad-template", f"cannot render: a text of more than {LONGEST // 1_000_000} MB")


def refuse_large(value: Any) -> None:
    """Refuse a value that holds too much: a short template can make lists that hold each other a billion times."""
    many, letters, rest = 0, 0, [value]
    while rest:
        one = rest.pop()
        many += 1
        if isinstance(one, str | bytes):
            letters += len(one)
        elif isinstance(one, Mapping) and not isinstance(one, Environment):
            rest += [*one, *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            rest += one
        if many + len(rest) > MOST or letters > LONGEST:
            raise RenderError("bad-template", "cannot render: a value is too large")


def refuse_operation(operator: str, left: Any, right: Any) -> None:
    """Refuse a power, a product or a sum before it takes all of the time or memory there is."""
    numbers = isinstance(left, int) and isinstance(right, int)
    bits = 0
    if numbers and operator == "**":
        bits = left.bit_length() * right if abs(left) > 1 else 0
    elif numbers and operator == "*":
        bits = left.bit_length() + right.bit_length()
    if bits > BITS:
        raise RenderError("bad-template", f"cannot render: the result of '{operator}' has too many digits")
    size = 0
    for many, other in ((left, right), (right, left)):
        if isinstance(many, str | list | tuple):
            times = other if isinstance(other, int) else 1
            size = max(size, len(many) * times) if operator == "*" else size + len(many)
    if size > (LONGEST if isinstance(left, str) or isinstance(right, str) else MOST):
        raise RenderError("bad-template", f"cannot render: the result of '{operator}' is too long")
