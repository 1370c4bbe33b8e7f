"""Time and memory limits of a rendering: a few letters can ask for more than there is (SPEC section 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from functools import wraps
from threading import local
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any

from agentv.model.values.formatting import plural
from agentv.model.values.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from jinja2.nodes import Template as TemplateNode

LONGEST = 10_000_000
"""Characters or items that `*` may make: a few letters can ask for more than there is memory."""

MOST = 200_000
"""Values that a list or mapping may hold, those inside it included, and steps that one rendering may take."""

TOTAL = 50_000_000
"""Characters that the values of one rendering may have together."""

PADDED = 100_000
"""What a number may ask for: a width, a count of lists, a length."""

PLACEHOLDERS = 2_000
"""Placeholders of one text that need a template; plain names need none, however many they are."""

SECONDS = 2.0
"""Of computing that one rendering may take, from its first step."""

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


class _Limits(local):
    """What the rendering of a thread may still take; None: nothing is being rendered."""

    left: list[float] | None = None
    """Steps, characters and, after the first step, when the time is up: by the clock, and by the thread's own time.

    The thread's own time is never ahead of the clock, and takes up to 100 times as long to read.
    """


_LIMITS = _Limits()


@contextmanager
def limited() -> Iterator[None]:
    """What the body renders ends with a RenderError where it takes too long, or too much memory."""
    before, _LIMITS.left = _LIMITS.left, [MOST, TOTAL]
    try:
        yield
    finally:
        _LIMITS.left = before


def spend(steps: int, letters: int = 0) -> None:
    """Take so much of what the rendering may take."""
    left = _LIMITS.left
    if letters > LONGEST:
        raise RenderError("bad-template", f"cannot render: a text of more than {LONGEST // 1_000_000} MB")
    if left is None:
        return
    left[0] -= steps
    left[1] -= letters
    if left[0] < 0 or left[1] < 0:
        what = "takes too many steps" if left[0] < 0 else "produces too much text"
        raise RenderError("bad-template", f"cannot render: it {what}")
    if len(left) == 2:  # the first step
        left += monotonic() + SECONDS, thread_time() + SECONDS
    elif monotonic() > left[2] and thread_time() > left[3]:
        raise RenderError("bad-template", f"cannot render: it takes more than {SECONDS:g} seconds")


def measure(value: Any) -> tuple[int, int]:
    """How many values a value holds, itself included, and how many characters; as often as it holds them.

    Raises:
        RenderError: too many; a short template can say lists that hold each other a billion times.
    """
    many = letters = 0
    rest = [value]
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
    return many, letters


def held(value: Any) -> Any:
    """A value that an expression has made, counted."""
    if isinstance(value, str | bytes):
        spend(1, len(value))
    elif isinstance(value, list | tuple | dict | set | frozenset):
        many, letters = measure(value)
        spend(1 + many // 8, letters)
    else:
        spend(1)
    return value


def letters(value: Any) -> int:
    """How long the text of a value is, about."""
    return len(value) if isinstance(value, str | bytes) else measure(value)[1] + measure(value)[0] * 4


def refuse_long(letters: int) -> None:
    """Refuse a text before it is made."""
    if letters > LONGEST:
        raise RenderError("bad-template", f"cannot render: a text of more than {LONGEST // 1_000_000} MB")


def refuse_large(*numbers: Any) -> None:
    """Numbers that say how long or how many."""
    if any(isinstance(one, int) and abs(one) > PADDED for one in numbers):
        raise RenderError(
            "bad-template", f"cannot render: the length of a text or list is given by a number over {PADDED:,}"
        )


_WIDTHS = lazy_pattern(r"\d{6,}|\*")


def refuse_formats(pattern: Any, *values: Any) -> None:
    """Widths in `%1000000d` and the like."""
    if _WIDTHS.search(str(pattern)):
        raise RenderError("bad-template", "cannot render: the width of a format is too large")
    refuse_long(len(str(pattern)) + str(pattern).count("%") * max(map(letters, values), default=0))


def _refuse_replacement(text: Any, old: Any = "", new: Any = "", *_: Any) -> None:
    text, old, new = str(text), str(old), str(new)
    refuse_long(len(text) + (text.count(old) if old else len(text) + 1) * len(new))


def _refuse_join(values: Any, between: Any = "", *_: Any) -> None:
    if isinstance(values, Sized):
        refuse_long(letters(values) + len(values) * len(str(between)))


def _refuse_indent(text: Any, width: Any = 4, *_: Any) -> None:
    size = len(width) if isinstance(width, str) else width if isinstance(width, int) else 0
    refuse_long(len(str(text)) + (str(text).count("\n") + 1) * abs(size))


def _refuse_input(value: Any, *others: Any) -> None:
    """What takes longer than its input is long."""
    if letters(value) > PADDED or any(letters(one) > 1_000 for one in others if isinstance(one, str)):
        raise RenderError("bad-template", f"cannot render: a text of more than {PADDED:,} characters in this filter")
    refuse_large(*others)


def _refuse_digits(_value: Any, precision: Any = 0, *_: Any) -> None:
    if isinstance(precision, int) and abs(precision) > 300:
        raise RenderError("bad-template", "cannot render: too many digits")


def _refuse_flattening(values: Any, _attribute: Any = None, start: Any = 0) -> None:
    """`sum` of lists copies all that it has at each step."""
    if not isinstance(start, int | float) and isinstance(values, Sized) and len(values) > 1_000:
        raise RenderError("bad-template", "cannot render: too many lists to join with 'sum'")


def _refuse_widths(_value: Any, *numbers: Any) -> None:
    refuse_large(*numbers)


def _refuse_translation(text: Any, table: Any = None, *_: Any) -> None:
    values = table.values() if isinstance(table, Mapping) else ()
    refuse_long(len(text) * max((letters(one) for one in values), default=1))


def _refuse_tabs(text: Any, width: Any = 8) -> None:
    refuse_large(width)
    refuse_long(len(text) + text.count("\t" if isinstance(text, str) else b"\t") * abs(width))


_CHECKS: Mapping[str, Callable[..., None]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill", "batch", "slice", "to_bytes"), _refuse_widths),
    **dict.fromkeys(("striptags", "urlize", "wordwrap", "pprint", "xmlattr"), _refuse_input),
    "tojson": _refuse_widths,
    "format": refuse_formats,
    "replace": _refuse_replacement,
    "translate": _refuse_translation,
    "expandtabs": _refuse_tabs,
    "join": _refuse_join,
    "indent": _refuse_indent,
    "round": _refuse_digits,
    "sum": _refuse_flattening,
    "lipsum": lambda _, *numbers: _refuse_input("", *(9 * one for one in numbers if isinstance(one, int) and one > 99)),
}
"""Filter, or method of a text → what refuses values that would make too much of a little."""

_OF_LONG_INPUT = frozenset({"string", "tojson", "pprint", "escape", "e", "forceescape", "urlencode", "format", "join"})
"""Filters that make a text of all that a value holds."""


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that refuses what is too much, and counts what it makes."""
    passed = 1 if hasattr(function, "jinja_pass_arg") else 0
    check = _CHECKS.get(name)

    @wraps(function)
    def guarded(*given: Any, **named: Any) -> Any:
        own = given[passed:]
        if name in _OF_LONG_INPUT and own and isinstance(own[0], list | tuple | Mapping):
            refuse_long(letters(own[0]))
        if check is not None:
            check(*own, *named.values())
        spend(1 + (len(own[0]) // 64 if own and isinstance(own[0], str | list | dict) else 0))
        return held(function(*given, **named))

    return guarded


def before_call(called: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
    """Refuse a method that would make too much: `'a'.center(10**10)`."""
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    spend(1 + (len(owner) // 64 if isinstance(owner, str | bytes | list | dict) else 0))
    if isinstance(owner, str | bytes) and name in _CHECKS and name != "format":
        _CHECKS[name](*((given[0], owner) if name == "join" and given else (owner, *given)), *named.values())
    elif isinstance(owner, int) or name == "generate_lorem_ipsum":
        _CHECKS["to_bytes" if isinstance(owner, int) else "lipsum"](None, *given, *named.values())


def before_operator(operator: str, left: Any, right: Any) -> None:
    """Refuse a text that `%` or `+` would make too long."""
    if operator == "%" and isinstance(left, str | bytes):
        refuse_formats(left, *(right if isinstance(right, tuple) else (right,)))
    elif operator == "+" and isinstance(left, str | list | tuple) and isinstance(right, Sized):
        refuse_long(len(left) + len(right))


_NESTED = lazy_pattern(r":[^}]*\{")


def bounded_format(formatted: Callable[..., str], pattern: str) -> Callable[..., str]:
    """`'…'.format`, with widths that are not too large."""

    def bounded(*given: Any, **named: Any) -> str:
        refuse_formats(pattern.replace("{", "%"), *given, *named.values())
        if _NESTED.search(pattern):  # a width among the values
            refuse_large(*given, *named.values())
        return formatted(*given, **named)

    return bounded


def with_limits(tree: TemplateNode) -> TemplateNode:
    """The template with loops, lists and joined texts counted while it runs."""
    from jinja2 import nodes
    from jinja2.visitor import NodeTransformer

    def counted(name: str, node: Any) -> nodes.Call:
        return nodes.Call(nodes.EnvironmentAttribute(name), [node], [], None, None, lineno=node.lineno)

    class Counting(NodeTransformer):
        def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802  # as Jinja calls it
            self.generic_visit(node)
            node.iter = counted("counted", node.iter)
            return node

        def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            node.expr = counted("weighed", node.expr)
            return node

        def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
            self.generic_visit(node)
            return counted("joined", nodes.List(node.nodes, lineno=node.lineno))

        def visit_List(self, node: nodes.List) -> nodes.Node:  # noqa: N802
            return self._collection(node)

        def visit_Dict(self, node: nodes.Dict) -> nodes.Node:  # noqa: N802
            return self._collection(node)

        def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
            return self._collection(node) if node.ctx == "load" else node

        def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802
            return counted("counted_text", nodes.Const(node.data, lineno=node.lineno)) if self.repeats else node

        def _collection(self, node: Any) -> nodes.Node:
            node = self.generic_visit(node)
            return counted("held", node) if any(True for _ in node.find_all((nodes.Name, nodes.Call))) else node

        repeats = any(True for _ in tree.find_all((nodes.For, nodes.Macro)))

    return Counting().visit(tree)  # type: ignore[no-any-return]  # what it is given


def joined(pieces: Iterable[Any]) -> str:
    """What `~` makes."""
    texts = [str(_shown_piece(piece)) for piece in pieces]
    refuse_long(sum(map(len, texts)))
    return "".join(texts)


def _shown_piece(value: Any) -> Any:
    """A value on its way into a text by `~`: as Python writes it, as Jinja does."""
    if isinstance(value, Mapping | list | tuple):
        refuse_long(letters(value))
    return value


def weighed(value: Any) -> Any:
    """A value that is compared, which takes as long as it is."""
    spend(1 + (len(value) // 4096 if isinstance(value, str | bytes | list | tuple | dict) else 0))
    return value


def counted(values: Any) -> Any:
    """What a loop goes through, a step each."""
    if isinstance(values, Sized):
        spend(len(values))
        return values
    return _stepping(values)


def _stepping(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        spend(1)
        yield value
