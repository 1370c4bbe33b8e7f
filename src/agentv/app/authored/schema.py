"""`agentv schema`: what editors check authored files with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentv.app.registries import registries
from agentv.assertions.user_code.custom import MAY_OVERRIDE
from agentv.authoring.fields.request import Registries
from agentv.authoring.json_schema.schema import KINDS, Vocabulary, json_schema
from agentv.authoring.source.files import is_directory, repository_root, upwards

WIDTH = 120
_DEPTH = 3


def schema_text(kind: str, directory: str | None = None) -> str:
    """The JSON Schema of one kind of file, as committed.

    Args:
        kind: of `KINDS`.
        directory: absolute, of a project, whose own assertion types are known and any other name refused; None: of no
            project, so that a name is refused only if it is a slip of a known one.
    """
    found = registries()
    custom = None if directory is None else _custom(directory, found)
    schema = json_schema(kind, Vocabulary(found.assertions, found.providers, MAY_OVERRIDE, custom))
    return _laid_out(schema) + "\n"


def in_project(directory: str) -> bool:
    """Whether a directory, or one above it, holds `.agentv`; that of the home directory is no project's."""
    home = str(Path.home())
    return any(is_directory(str(Path(one, ".agentv"))) and one != home for one in upwards(directory, ""))


def _custom(directory: str, found: Registries) -> dict[str, str]:
    return dict.fromkeys(found.custom(directory, repository_root(directory)).types, "defined in .agentv/assertions")


def _laid_out(schema: Mapping[str, Any], depth: int = _DEPTH) -> str:
    """JSON of which each definition and each of its keywords has a line, so that a difference can be read."""
    indent = " " * (_DEPTH - depth + 1)
    pairs = (f"{indent}{json.dumps(key)}: {_value(value, depth - 1)}" for key, value in schema.items())
    return "{\n" + ",\n".join(pairs) + f"\n{indent[1:]}}}"


def _value(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    return _laid_out(value, depth) if isinstance(value, dict) and depth and len(line) > WIDTH else line


__all__ = ["KINDS", "schema_text"]
