"""JavaScript's values in Nunjucks: how they are shown, converted, compared, accessed and filtered.

Operations whose result would differ from JavaScript's raise. Source: nunjucks 3.2.4 (`filters.js`, `lib.js`,
`tests.js`).
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Any, TypeAlias

from jinja2 import ChainableUndefined, Undefined

from agentv.templating.rendering import joined, no_value, refuse_large, refuse_long

_Function: TypeAlias = Callable[..., Any]

UNDEFINED = ChainableUndefined()

_BLANKS = (*range(9, 14), 32, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF)
_SPACE = "".join(map(chr, _BLANKS))
"""Characters that are white space in JavaScript."""

_FLOAT = re.compile(r"[+-]?(?:Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_INT = re.compile(r"[+-]?\d+", re.ASCII)
_ESCAPES = str.maketrans({"&": "&amp;", '"': "&quot;", "'": "&#39;", "<": "&lt;", ">": "&gt;", "\\": "&#92;"})


@dataclass(frozen=True, slots=True)
class _Safe:
    """The result of `safe` or `escape`: an object, which `escape` does not change."""

    text: str


def is_nothing(value: Any) -> bool:
    """Whether a value is null or undefined. A variable that must be set raises its own error."""
    return value is None or (isinstance(value, Undefined) and not str(value))


def kind(value: Any) -> str:
    """The type of a value as in `typeof`, but with `null` and `list` as types of their own."""
    if is_nothing(value):
        return "null" if value is None else "undefined"
    types = {bool: "boolean", int | float: "number", str: "string", list | tuple: "list"}
    return next((name for type_, name in types.items() if isinstance(value, type_)), "object")


def text(value: Any) -> str:
    """The text of a value, as in `String(value)`."""
    if isinstance(value, str | _Safe):
        return value if isinstance(value, str) else value.text
    if isinstance(value, list | tuple):
        refuse_large(value)
        return ",".join(map(shown, value))
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _digits(value)
    if kind(value) == "object":
        raise no_value(value)
    return str(value).lower() if isinstance(value, bool) else kind(value)


def shown(value: Any) -> str:
    """The text that a placeholder shows for a value."""
    written = "" if is_nothing(value) else text(value)
    refuse_long(len(written))
    return written


def _digits(value: float) -> str:
    value = float(value) + 0.0  # turns -0 into 0
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value and not 1e-6 <= abs(value) < 1e21:
        return re.sub(r"e([+-])0*", r"e\1", repr(value))
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def number(value: Any) -> float:
    """The number of a value, as in `Number(value)`."""
    if isinstance(value, int | float):
        return float(value)
    if is_nothing(value):
        return 0.0 if value is None else math.nan
    digits = text(value).strip(_SPACE) or "0"
    if digits[:2].lower() in ("0x", "0o", "0b"):
        return float(int(digits, 0))
    return float(digits) if _FLOAT.fullmatch(digits) else math.nan


def true(value: Any) -> bool:
    """Whether a value is truthy in JavaScript."""
    if is_nothing(value) or (isinstance(value, float) and math.isnan(value)):
        return False
    return bool(value) or isinstance(value, list | tuple | Mapping | _Safe)


def _whole(value: float) -> float:
    """The number, as an int if it is whole, so that it can be an index."""
    return int(value) if float(value).is_integer() and abs(value) <= 2**53 else float(value)


def _of_numbers(function: _Function) -> _Function:
    return lambda one, other: _whole(function(number(one), number(other)))


def _primitive(value: Any) -> Any:
    return text(value) if kind(value) in ("list", "object") else value


def _add(one: Any, other: Any) -> Any:
    one, other = _primitive(one), _primitive(other)
    if isinstance(one, str) or isinstance(other, str):
        return joined((text(one), text(other)))
    return _whole(number(one) + number(other))


def _equal(one: Any, other: Any) -> bool:
    if is_nothing(one) or is_nothing(other):
        return is_nothing(one) and is_nothing(other)
    if {kind(one), kind(other)} <= {"list", "object"}:
        return one is other
    one, other = _primitive(one), _primitive(other)
    return one == other if isinstance(one, str) and isinstance(other, str) else number(one) == number(other)


def _same(one: Any, other: Any) -> bool:
    return kind(one) == kind(other) and _equal(one, other)


def _ordered(compare: _Function) -> _Function:
    def ordered(one: Any, other: Any) -> bool:
        texts = isinstance(one := _primitive(one), str) and isinstance(other := _primitive(other), str)
        return bool(compare(one, other) if texts else compare(number(one), number(other)))

    return ordered


def _countable(value: str) -> str:
    """The text, or raise if JavaScript counts its characters differently."""
    if value and max(value) > "\uffff":
        raise ValueError("JavaScript counts characters such as emoji twice: places in this text differ")
    return value


def contains(one: Any, holder: Any) -> bool:
    """The result of `one in holder`."""
    if isinstance(holder, list | tuple):
        return any(_same(one, each) for each in holder)
    if isinstance(holder, str | Mapping):
        return text(one) in holder
    raise TypeError(f"'in' cannot look into {kind(holder)}")


def entries(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The entries of an object in JavaScript's order: keys that are whole numbers come first."""
    return sorted(value.items(), key=lambda pair: int(pair[0]) if re.fullmatch(r"0|[1-9]\d{0,8}", pair[0]) else 10**9)


def items(value: Any) -> list[Any]:
    """What a loop iterates over: the items of a list or the characters of a text; other values have no items."""
    if isinstance(value, _Safe):
        raise TypeError("a text behind 'safe' or 'escape' has no items")
    return list(_countable(value) if isinstance(value, str) else value if isinstance(value, list | tuple) else ())


def pairs(value: Any, count: int) -> list[Any]:
    """What a loop with several variables iterates over."""
    if isinstance(value, Mapping) and count == 2:
        return entries(value)
    if true(value) and not isinstance(value, list | tuple):
        raise TypeError(f"a loop with {count} variables cannot go through {kind(value)}")
    return [[member(one, place) for place in range(count)] for one in items(value)]


def member(owner: Any, key: Any) -> Any:
    """The value of `owner[key]`."""
    name, found = text(key), kind(owner)
    if is_nothing(owner):
        raise TypeError(f"{found} has no '{name}'")
    if isinstance(owner, Mapping):
        return owner.get(name, UNDEFINED)
    if isinstance(owner, str | list | tuple):
        if name == "length":
            return len(owner.encode("utf-16-le", "surrogatepass")) // 2 if isinstance(owner, str) else len(owner)
        if re.fullmatch(r"0|[1-9]\d*", name):
            values = _countable(owner) if isinstance(owner, str) else owner
            return values[int(name)] if int(name) < len(values) else UNDEFINED
    method = _METHODS.get(found, {}).get(name)
    return UNDEFINED if method is None else lambda *given: method(owner, *given)


def _attribute(item: Any, path: str | None) -> Any:
    for name in path.split(".") if path else ():
        item = member(item, name) if isinstance(item, Mapping) else UNDEFINED
    return item


def _typed(wanted: type, value: Any) -> Any:
    if not isinstance(value, wanted):
        raise TypeError(f"the filter needs a {'text' if wanted is str else wanted.__name__}, found {kind(value)}")
    return value


def _column(values: Any, name: str | None) -> list[Any]:
    return [member(one, name) for one in items(values)] if name else _typed(list, values)


def _of_text(function: _Function) -> _Function:
    """A filter for texts that treats null, undefined and false as empty text."""
    return lambda value, *given: function(_typed(str, "" if value is False or is_nothing(value) else value), *given)


def _dump(value: Any, space: Any = "", margin: str = "\n") -> Any:
    gap = space[:10] if isinstance(space, str) else " " * min(int(number(space)), 10)
    inner, colon = (margin + gap, ": ") if gap else ("", ":")
    if isinstance(value, list | tuple):
        refuse_large(value)
        parts, ends = [_dump(one, gap, inner) for one in value], "[]"
    elif isinstance(value, dict):
        refuse_large(value)
        parts, ends = [f"{_dump(key)}{colon}{_dump(one, gap, inner)}" for key, one in entries(value)], "{}"
    elif isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    else:
        nothing = isinstance(value, float) and not math.isfinite(value)
        return UNDEFINED if kind(value) == "undefined" else "null" if nothing else text(value)
    inside = f",{inner}".join(parts)
    return f"{ends[0]}{inner}{inside}{margin if gap else ''}{ends[1]}" if parts else ends


def _default(value: Any, other: Any, falsy: Any = False) -> Any:
    return other if isinstance(value, Undefined) or (true(falsy) and not true(value)) else value


def _join(values: Any, between: Any = "", attribute: str | None = None) -> str:
    found = _column(values, attribute)
    refuse_large(found)
    return (text(between) if true(between) else "").join(map(shown, found))


def _indent(value: str, width: int = 4, first: bool = False) -> str:
    refuse_long(width)
    margin = " " * (width or 4)
    return (margin if first and value else "") + value.replace("\n", f"\n{margin}")


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> Any:
    if {kind(old), kind(value)} - {"string", "number"}:
        return _typed(str, value) if isinstance(value, _Safe) else value
    return (text(value) if text(old) else _countable(text(value))).replace(text(old), text(new), count)


def _sort(values: Any, reverse: Any = False, case_sensitive: Any = False, attribute: str | None = None) -> list[Any]:
    """The sorted values. Mixed texts and numbers raise, as their order would depend on the sorting algorithm."""
    keys = [(_attribute(one, attribute), one) for one in items(values)]
    kinds = {kind(key) for key, _ in keys}
    if len(kinds) > 1 or kinds - {"string", "number"}:
        raise TypeError(f"the filter sorts texts or numbers, found {' and '.join(sorted(kinds))}")
    folds = kinds == {"string"} and not true(case_sensitive)
    ordered = sorted(keys, key=lambda pair: pair[0].lower() if folds else pair[0], reverse=true(reverse))
    return [one for _, one in ordered]


def _selected(wanted: bool) -> _Function:
    return lambda values, test="truthy", *given: [
        one for one in _typed(list, values) if TESTS[test](one, *given) is wanted
    ]


def _having(wanted: bool) -> _Function:
    return lambda values, name: [one for one in _typed(list, values) if true(member(one, name)) is wanted]


def _round(value: Any, digits: Any = 0, method: str = "common") -> float:
    factor = 10 ** (digits or 0)
    scaled = number(value) * factor
    if not math.isfinite(scaled):
        return scaled
    low = math.floor(scaled)
    up = scaled > low if method == "ceil" else method != "floor" and scaled - low >= 0.5
    return _whole((low + up) / factor)


def _parsed(pattern: re.Pattern[str]) -> _Function:
    def parsed(value: Any, default: Any = UNDEFINED) -> Any:
        found = pattern.match(text(value).lstrip(_SPACE))
        return _whole(float(found[0])) if found else default

    return parsed


def _length(value: Any) -> Any:
    if value is False or is_nothing(value):
        return 0
    return len(value) if isinstance(value, Mapping) else member(value, "length")


def _list(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [{"key": key, "value": one} for key, one in entries(value)]
    return items(value) if isinstance(value, str) else _typed(list, value)


OPERATORS: Mapping[str, _Function] = {
    "+": _add,
    "~": lambda one, other: joined((text(one), text(other))),
    "-": _of_numbers(operator.sub),
    "*": _of_numbers(operator.mul),
    "/": _of_numbers(operator.truediv),
    "//": _of_numbers(lambda one, other: math.floor(one / other)),
    "%": _of_numbers(math.fmod),
    "**": _of_numbers(lambda one, other: math.pow(one, other) if math.isfinite(other) else math.nan),
    "==": _equal,
    "!=": lambda one, other: not _equal(one, other),
    "===": _same,
    "!==": lambda one, other: not _same(one, other),
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
}

TESTS: Mapping[str, _Function] = {
    "defined": lambda value: not isinstance(value, Undefined),
    "undefined": lambda value: isinstance(value, Undefined),
    "null": lambda value: value is None,
    "none": lambda value: value is None,
    "number": lambda value: kind(value) == "number",
    "string": lambda value: kind(value) == "string",
    "mapping": lambda value: isinstance(value, Mapping),
    "iterable": lambda value: isinstance(value, str | list | tuple),
    "truthy": true,
    "falsy": lambda value: not true(value),
    "odd": lambda value: math.fmod(number(value), 2) == 1,
    "even": lambda value: math.fmod(number(value), 2) == 0,
    "divisibleby": lambda value, other: math.fmod(number(value), number(other)) == 0,
    **dict.fromkeys(("eq", "equalto", "sameas"), OPERATORS["==="]),
    **dict.fromkeys(("lt", "lessthan"), OPERATORS["<"]),
    **dict.fromkeys(("gt", "greaterthan"), OPERATORS[">"]),
    "ne": OPERATORS["!=="],
    "le": OPERATORS["<="],
    "ge": OPERATORS[">="],
}

FILTERS: Mapping[str, _Function] = {
    "abs": lambda value: _whole(abs(number(value))),
    "capitalize": _of_text(lambda value: value[:1].upper() + value[1:].lower()),
    **dict.fromkeys(("default", "d"), _default),
    "dump": _dump,
    **dict.fromkeys(
        ("escape", "e"), lambda value: _Safe(shown(value).translate({} if isinstance(value, _Safe) else _ESCAPES))
    ),
    "first": lambda values: member(values, 0),
    "float": _parsed(_FLOAT),
    "indent": _of_text(_indent),
    "int": _parsed(_INT),
    "join": _join,
    "last": lambda values: member(values, _add(number(member(values, "length")), -1)),
    "length": _length,
    "list": _list,
    "load": json.loads,
    "lower": _of_text(str.lower),
    "reject": _selected(False),
    "rejectattr": _having(False),
    "replace": _replace,
    "reverse": lambda value: _countable(value)[::-1] if kind(value) == "string" else items(value)[::-1],
    "round": _round,
    "safe": lambda value: _Safe(shown(value)),
    "select": _selected(True),
    "selectattr": _having(True),
    "sort": _sort,
    "string": lambda value: _typed(str, value if is_nothing(value) else text(value)),
    "sum": lambda values, name=None, start=0: _add(start, reduce(_add, _column(values, name), 0)),
    "title": _of_text(lambda value: " ".join(word[:1].upper() + word[1:].lower() for word in value.split(" "))),
    "trim": lambda value: _typed(str, value).strip(_SPACE),
    "upper": _of_text(str.upper),
}


def _pattern_free(new: Any) -> str:
    if "$" in text(new):
        raise ValueError("'$' has a meaning in JavaScript's 'replace'")
    return text(new)


def _fixed(value: float, digits: int = 0) -> str:
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


_METHODS: Mapping[str, Mapping[str, _Function]] = {
    "string": {
        "toUpperCase": str.upper,
        "toLowerCase": str.lower,
        "trim": lambda value: value.strip(_SPACE),
        "includes": lambda value, part: text(part) in value,
        "startsWith": lambda value, part: value.startswith(text(part)),
        "endsWith": lambda value, part: value.endswith(text(part)),
        "split": lambda value, between: value.split(text(between)) if between != "" else items(value),
        "replace": lambda value, old, new: value.replace(text(old), _pattern_free(new), 1),
        "replaceAll": lambda value, old, new: value.replace(text(old), _pattern_free(new)),
        "indexOf": lambda value, part, start=0: _countable(value).find(text(part), max(start, 0)),
        "slice": lambda value, start=0, end=None: _countable(value)[start:end],
        "toString": text,
    },
    "list": {
        "join": lambda values, between=",": text(between).join(map(shown, values)),
        "includes": lambda values, one: contains(one, values),
        "indexOf": lambda values, one: next((at for at, each in enumerate(values) if _same(one, each)), -1),
        "slice": lambda values, start=0, end=None: values[start:end],
        "toString": text,
    },
    "number": {"toString": text, "toFixed": _fixed},
    "boolean": {"toString": text},
}
"""Type → name of a method → function."""
