"""What every template language shares: what a template sees, its errors, plain results, limits (SPEC section 6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic, thread_time
from types import FrameType
from typing import Any

from msgspec import Struct, field

from agentv.model.values.values import EMPTY, Json

UNREADABLE = "not a valid template"
"""How the message begins where the syntax is wrong, whatever the variables are."""

LITERAL_HINT = "for literal braces, write {{ '{{' }}"


class Language(Struct, frozen=True):
    """What placeholders are written in.

    Attributes:
        nunjucks: values, conditions and filters are those of Nunjucks, as promptfoo renders them.
        missing_empty: a variable that is not set is empty text, and so is what is in it.
    """

    nunjucks: bool = False
    missing_empty: bool = False


JINJA = Language()


class Scope(Struct, frozen=True):
    """What placeholders can see: variables by name, all of them as `vars`, and the environment as `env`.

    `names` are further things to see, such as `prompt`; they hide variables of the same name, not `vars.prompt`.
    `closed`: the text is data, which may not read the environment. `language`: what the text is written in.
    """

    vars: Mapping[str, Json]
    env: Mapping[str, str]
    names: Mapping[str, Json] = field(default=EMPTY)
    closed: bool = False
    language: Language = JINJA


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


@contextmanager
def limited() -> Iterator[None]:
    """End what the body runs with a RenderError after two seconds, by the clock and by the thread's own time."""
    until, computed = monotonic() + SECONDS, thread_time() + SECONDS

    def trace(frame: FrameType, _event: str, _arg: object) -> Any:
        # in a finalizer Python would drop the error, and with it the trace
        if frame.f_code.co_filename == "<template>" and monotonic() > until and thread_time() > computed:
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


def plain(value: Any) -> Json:
    """What an expression came to, as plain data to its innermost part."""
    refuse_large(value)
    return _plain(value)


def _plain(value: Any) -> Json:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping) and not isinstance(value, Environment):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    from jinja2 import Undefined  # which takes long
    from jinja2.runtime import LoopContext

    if isinstance(value, Undefined):
        return str(value)  # one that must be defined says so
    if isinstance(value, Iterable) and not isinstance(value, Environment | LoopContext | bytes):
        return plain(list(value))  # such as a filter makes
    raise no_value(value)


def no_value(value: object) -> RenderError:
    """The error of what has no text, such as a function."""
    found = "the whole environment" if isinstance(value, Environment) else f"a {type(value).__name__}"
    return RenderError("bad-template", f"the expression must be a value, found {found}")


def shown(value: Any) -> str:
    """A value as a placeholder shows it in a text: what is no text or number as JSON, since a prompt is not Python."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        refuse_long(len(value))
        return value
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
