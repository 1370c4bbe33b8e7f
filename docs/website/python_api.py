"""Renders the public names of a module as Markdown: signatures and docstrings, as the reference of the Python API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, get_origin

from msgspec import Struct

LINE = 100
"""Characters of a call that stands in one line."""

SECTION = re.compile(r"^(Args|Attributes|Returns|Raises):\n((?:[ ]{4}.*\n?|\n)*)", re.MULTILINE)
EXAMPLE = re.compile(r"^Example:\n((?:[ ]{4}.*\n?)+)", re.MULTILINE)
INTERNAL = re.compile(r" \([^()]*SPEC section[^()]*\)")
"""References to the project's specification, which readers of the pages do not have."""

ENTRY = re.compile(r"^(?P<name>[\w., ]+):\s(?P<text>.*(?:\n[ ]+.*)*)", re.MULTILINE)


def module_reference(module: str, *, without: Iterable[str] = ()) -> str:
    """The public names of a module: functions, then classes, then other names; those of other modules are left out."""
    skipped = {name for other in without for name in import_module(other).__all__}
    loaded = import_module(module)
    names = [name for name in loaded.__all__ if name not in skipped and not name.startswith("__")]
    found = sorted(((_rank(getattr(loaded, name)), name) for name in names), key=lambda one: (one[0], one[1].lower()))
    return "\n\n".join(_entry(name, getattr(loaded, name)) for _, name in found)


def _rank(value: object) -> int:
    if inspect.isfunction(value):
        return 0
    return 1 if inspect.isclass(value) else 2


def _entry(name: str, value: Any) -> str:
    """One name."""
    parts = [f"### {name}"]
    if inspect.isfunction(value):
        parts += [_block(_signature(name, value)), *_documented(value)]
    elif inspect.isclass(value):
        parts += [*_class_parts(name, value)]
    else:
        parts += [_block(f"{name} = {_type_text(value)}")]
    return "\n\n".join(part for part in parts if part)


def _class_parts(name: str, cls: type) -> Iterator[str]:
    own = _fields(cls)
    signature = _field_signature(name, own) if own else _signature(name, cls)
    bases = [base.__name__ for base in cls.__bases__ if issubclass(base, Exception)]
    if bases:
        yield _block(f"class {name}({', '.join(bases)})")
    elif not issubclass(cls, Enum) and not getattr(cls, "_is_protocol", False):
        yield _block(signature)
    text, sections = split_docstring(inspect.getdoc(cls) or "")
    yield "" if text.startswith(f"{cls.__name__}(") else text
    said = {**sections.get("Args", {}), **sections.get("Attributes", {})}
    rows = [[f"`{one}`", f"`{_annotation(kind)}`", said.pop(one, "")] for one, kind, _ in own]
    rows += [[f"`{key}`", "", meaning] for key, meaning in said.items()]
    if issubclass(cls, Enum):
        rows = [[f"`{one.name}`", f"`{one.value!r}`", ""] for one in cls]
    if any(row[2] for row in rows) or issubclass(cls, Enum):
        yield _table(["name", "value" if issubclass(cls, Enum) else "type", "meaning"], rows)
    yield _table(["member", "meaning"], _members(cls))


def _fields(cls: type) -> list[tuple[str, object, bool]]:
    """The name and the type of each field of a Struct or a dataclass, and whether it must be given."""
    found: list[tuple[str, object, bool]] = []
    if issubclass(cls, Struct):
        kinds = {name: kind for base in reversed(cls.__mro__) for name, kind in inspect.get_annotations(base).items()}
        names = cls.__struct_fields__
        required = names[: len(names) - len(cls.__struct_defaults__)]
        found = [(name, kinds[name], name in required) for name in names]
    elif is_dataclass(cls):
        found = [(one.name, one.type, one.default is MISSING and one.default_factory is MISSING) for one in fields(cls)]
    return [one for one in found if not one[0].startswith("_")]


def _field_signature(name: str, own: Iterable[tuple[str, object, bool]]) -> str:
    return _call(name, [one if required else f"{one}=…" for one, _, required in own])


def _members(cls: type) -> Iterator[list[str]]:
    """The public methods and properties that the class itself has, with their first sentences."""
    if issubclass(cls, Enum):
        return
    for name, value in vars(cls).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        text = split_docstring(inspect.getdoc(function) or "")[0].split("\n\n")[0].replace("\n", " ")
        shown = name if isinstance(value, property) else _signature(name, function, with_types=False)
        yield [f"`{shown}`", text]


def _signature(name: str, value: Any, *, with_types: bool = True) -> str:
    """A call as it is written, without `self`; one line each for the parameters of a long one."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    words = []
    for one in signature.parameters.values():
        if one.name in {"self", "cls"}:
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        shown = one if with_types else one.replace(annotation=one.empty)
        words.append(str(shown).replace("'", "") if with_types else str(shown))
    returns = signature.return_annotation
    arrow = f" -> {_annotation(returns)}" if with_types and returns is not signature.empty and returns else ""
    return _call(name, words, arrow) if with_types else f"{name}({', '.join(words)})"


def _call(name: str, words: list[str], arrow: str = "") -> str:
    """A call in one line, or with a line for each parameter where it is long."""
    short = f"{name}({', '.join(words)}){arrow}"
    return short if len(short) <= LINE else f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){arrow}"


def _annotation(kind: object) -> str:
    text = kind if isinstance(kind, str) else getattr(kind, "__name__", None) or str(kind)
    return text.strip("'\"")


def _type_text(value: object) -> str:
    origin = get_origin(value)
    return str(value).replace("typing.", "") if origin else str(getattr(value, "__value__", value))


def _documented(value: object) -> Iterator[str]:
    """A function's docstring: its text, then its arguments, result and errors."""
    text, sections = split_docstring(inspect.getdoc(value) or "")
    yield text
    yield _table(["argument", "meaning"], ([f"`{name}`", said] for name, said in sections.get("Args", {}).items()))
    returns = sections.get("Returns", {}).get("")
    yield f"Returns: {returns}" if returns else ""
    yield _table(["raises", "if"], ([f"`{name}`", said] for name, said in sections.get("Raises", {}).items()))


def split_docstring(text: str) -> tuple[str, dict[str, dict[str, str]]]:
    """The text of a docstring before its sections, and section → name → meaning; a result has no name."""
    sections: dict[str, dict[str, str]] = {}
    for title, body in SECTION.findall(text + "\n"):
        lines = inspect.cleandoc("\n" + body)
        entries = {
            name.strip(): " ".join(found["text"].split())
            for found in ENTRY.finditer(lines)
            for name in found["name"].split(",")
        }
        sections[title] = {"": " ".join(lines.split())} if title == "Returns" else entries
    plain = INTERNAL.sub("", SECTION.sub("", text + "\n")).strip()
    return EXAMPLE.sub(lambda found: f"\n{_block(_without_prompts(found[1]))}\n", plain + "\n").strip(), sections


def _without_prompts(lines: str) -> str:
    """An example of a docstring without its indentation and prompts."""
    return re.sub(r"^ *(>>> |\.\.\. |\.\.\.$)", "", lines.rstrip(), flags=re.MULTILINE)


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table; nothing without rows."""
    found = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *found]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) if found else ""
