"""Installed plugins, as `agentv plugins` lists them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PluginStatus = Literal["ok", "shadowed", "broken"]


class ListedPlugin(Struct, frozen=True):
    """One plugin.

    Attributes:
        kind: `extension` (of agentv itself), `assertion`, `target` or `report`.
        status: `shadowed`: something built in has its name and wins; `broken`: it cannot be used.
        summary: what it says of itself, one line.
        value: what its entry point names: `package.module:Class`; the module of an extension.
        file, line: where its `entry_points.txt` says so; an extension's `__init__.py`.
        code, problem, hint: why it is not used; None: it is.
    """

    kind: str
    name: str
    package: str
    version: str
    status: PluginStatus
    summary: str
    value: str
    file: str
    line: int
    code: str | None = None
    problem: str | None = None
    hint: str | None = None
