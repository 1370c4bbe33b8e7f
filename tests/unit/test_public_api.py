"""The public API: the names that users import, with their parameters. Everything else may change."""

import inspect
import os
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path

from msgspec import Struct

MODULES = ("agentv", "agentv.plugins", "agentv.testing", "agentv.testing.contract")
PINNED = Path(__file__).with_name("public_api.txt")


def public() -> Iterator[str]:
    """Yield a line for each public name, and for each method of a class."""
    for module in MODULES:
        loaded = import_module(module)
        for name in sorted(loaded.__all__):
            value = getattr(loaded, name)
            yield f"{module}.{name}{called(value)}"
            if inspect.isclass(value):
                yield from (f"{module}.{name}.{member}" for member in members(value))


def called(value: object) -> str:
    if not callable(value) or (inspect.isclass(value) and issubclass(value, Enum)):
        return ""
    if inspect.isclass(value) and issubclass(value, Struct):
        names = value.__struct_fields__
        required = len(names) - len(value.__struct_defaults__)
        shown = (name if place < required else f"{name}=" for place, name in enumerate(names) if name[0] != "_")
        return f"({', '.join(shown)})"
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    words = []
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and "*" not in words:
            words.append("*")
        if one.name not in ("self", "cls") and not one.name.startswith("_"):
            words.append(one.name if one.default is one.empty else f"{one.name}=")
    return f"({', '.join(words)})"


def members(cls: type) -> Iterator[str]:
    if issubclass(cls, Enum):
        yield from (one.name for one in cls)
        return
    for name, value in sorted(vars(cls).items()):
        function = getattr(value, "__func__", value)
        if not name.startswith("_") and (isinstance(value, property) or inspect.isfunction(function)):
            yield name if isinstance(value, property) else name + called(function)


def test_the_public_api_is_what_is_pinned():
    """To add to it, set AGENTV_UPDATE_CASES=1. Remove a name or a parameter only as in CONTRIBUTING (Compatibility)."""
    found = "".join(f"{line}\n" for line in public())
    if os.environ.get("AGENTV_UPDATE_CASES"):
        PINNED.write_text(found)
    assert found == PINNED.read_text()
