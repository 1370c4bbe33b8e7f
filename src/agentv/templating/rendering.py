"""What both template languages share: scopes, errors, conversion of results, limits (SPEC section 6)."""

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
"""Start of the message of a syntax error, which does not depend on the variables."""

LITERAL_HINT = "for literal braces, write {{ '{{' }}"


class Language(Struct, frozen=True):
    """The language of placeholders.

    Attributes:
        nunjucks: values, conditions and filters behave as in Nunjucks, as promptfoo renders them.
        missing_empty: a variable that is not set, and anything in it, is empty text.
    """

    nunjucks: bool = False
    missing_empty: bool = False


JINJA = Language()


class Scope(Struct, frozen=True):
    """The values that placeholders can use: variables by name, all of them as `vars`, and the environment as `env`.

    Attributes:
        names: further values, such as `prompt`; they hide variables of the same name, but not `vars.prompt`.
        closed: the text is data, which must not read the environment.
        language: the language of the text.
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
        name: the variable or environment variable that the error is about, or None.
        line: line of a syntax error in the text, counted from 1, or None.
    """

    def __init__(self, code: str, message: str, name: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.name = name
        self.line = line


class Environment(Mapping[str, str]):
    """The environment, as `env` in templates, which data must not read. Unset variables have their own error code."""

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
"""Maximum length of a rendered text, or of a value in it, in characters."""

MOST = 200_000
"""Maximum number of values in a list or mapping, including nested ones."""

PLACEHOLDERS = 2_000
"""Maximum number of placeholders of a template that is compiled; texts with only plain names are not compiled."""

SECONDS = 2.0
"""Maximum computing time of one rendering."""

BITS = 13_000
"""Maximum bits of an integer that `**` and `*` may produce. Python does not convert longer ones to text, and seven
characters can request one that takes minutes."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise RenderError in the body after `SECONDS` of both wall-clock time and the thread's CPU time."""
    until, computed = monotonic() + SECONDS, thread_time() + SECONDS

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        # Python drops an error raised in a finalizer or at a loop's StopIteration, and the trace function with it
        in_template = event != "exception" and frame.f_code.co_filename == "<template>"
        if in_template and monotonic() > until and thread_time() > computed:
            raise RenderError("bad-template", f"cannot render: it takes more than {SECONDS:g} seconds")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def joined(chunks: Iterable[str]) -> str:
    """Join chunks, or raise RenderError if the text is too long."""
    made, letters = [], 0
    for chunk in chunks:
        letters += len(chunk)
        refuse_long(letters)
        made.append(chunk)
    return "".join(made)


def refuse_long(letters: int) -> None:
    """Raise RenderError if a text of this many characters is too long."""
    if letters > LONGEST:
        raise RenderError("bad-template", f"cannot render: a text of more than {LONGEST // 1_000_000} MB")


def refuse_large(value: Any) -> None:
    """Raise RenderError if a value is too large: a short template can nest lists that contain each other many times."""
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
    """Raise RenderError for a power, product or sum whose result is too large, before it is computed."""
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
    """The value of an expression, converted to plain data at every level."""
    refuse_large(value)
    return _plain(value)


def _plain(value: Any) -> Json:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping) and not isinstance(value, Environment):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    from jinja2 import Undefined  # slow to import
    from jinja2.runtime import LoopContext

    if isinstance(value, Undefined):
        return str(value)  # raises if it must be defined
    if isinstance(value, Iterable) and not isinstance(value, Environment | LoopContext | bytes):
        return plain(list(value))  # such as a generator from a filter
    raise no_value(value)


def no_value(value: object) -> RenderError:
    """The error for a value that cannot be shown as text, such as a function."""
    found = "the whole environment" if isinstance(value, Environment) else f"a {type(value).__name__}"
    return RenderError("bad-template", f"the expression must be a value, found {found}")


def shown(value: Any) -> str:
    """The text that a placeholder shows for a value: JSON, not Python, for values other than text and numbers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        refuse_long(len(value))
        return value
    value = plain(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
