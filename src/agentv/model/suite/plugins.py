"""Installed plugins, as `agentv plugins` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

PluginStatus = Literal["ok", "shadowed", "broken"]


class ListedPlugin(Struct, frozen=True):
    """One plugin.

    Attributes:
        kind: `extension`, `assertion`, `target`, `report`, or what else an extension adds, such as `command`.
        status: `shadowed`: something built in has its name and wins; `broken`: it cannot be used.
        summary: what it says of itself, one line.
        value: what its entry point names: `package.module:Class`; the module of an extension.
        file, line: where its `entry_points.txt` says so; an extension's `__init__.py`.
        adds: of an extension of agentv itself: kind → names; those of other packages are listed one by one.
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
    adds: Mapping[str, tuple[str, ...]] | None = None
    code: str | None = None
    problem: str | None = None
    hint: str | None = None
