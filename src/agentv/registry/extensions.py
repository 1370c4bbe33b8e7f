"""The extensions in `agentv/extensions`, and what each registers in its `__init__.py`, as strings.

Installed packages add to the same tables; `user_code/plugins.py` finds them. An extension may have these tables. Each
is a dict from names to import paths `module:attribute`, unless stated otherwise:

    COMMANDS          subcommand → the command.
    COMMAND_SECTIONS  subcommand → its section in `agentv --help`: Run, Read, Judge, Agents, Share or (default) More.
    EXECUTORS         value of `--executor` → a function that opens the executor of a prepared run's trials.
    EXPORT_FORMATS    suffix of an exported file → a function from the export to the pieces of its text.
    OPTIONS           command and flag → the `click.Option`. Options of `eval` that are not settings are passed to
                      `BESIDE_RUNS`; those of `convert` are `DialectOption`s.
    BESIDE_RUNS       name of something that happens alongside a run of the command line → a function of the prepared
                      run, the values of options of extensions that are not settings, and whether to be quiet. It
                      returns None, or a function that returns a context manager around the run. This function takes
                      the callback for when the run's directory is opened, and its context yields the callback to use
                      instead.
    CONFIG_KEYS       key of `.agentv/config.yaml` → a function that reports problems of its node.
    ENDPOINTS         screen of the pages other than those of runs → a tuple of the API's `Endpoint`s that it needs.
    PAGES             parts of the pages of projects. `project` → a function of a `ProjectContext` and the URL of the
                      static files that returns the application; `static` → a function that returns the route of these
                      files; `version` → a function that returns the folder in their URL.
    PROVIDERS         provider of targets → its settings, a frozen dataclass derived from
                      `registry.types.ProviderSettings`.
    ASSERTIONS        assertion type → its options, a dataclass derived from `registry.fields.DeclaredAssertion` that
                      grades.
    RETURNS           kind of object that the function of a `python` target may return → a function of the object and
                      the last message of the input, which returns the answer, a `Failure`, or None for other objects.
    RECORDINGS        value of `trace` of a `python` target → a class of context managers that record a call in a
                      worker. Its method `trace` returns the `Trace`; `problems` returns Issues if the machine lacks
                      something that it needs.
    TRACE_FORMATS     value of `agentv results export --format` → a function of a stored run and paths, which writes the
                      files and yields lines that say so.
    SUITE_KEYS        key of eval files that the core does not declare → the JSON Schema of its value. A port reads it.
    CASE_KEYS         key of a case that the core does not declare → the JSON Schema of its value.
    SCHEMA_DEFS       part of the JSON Schema of eval files → a function that returns its definitions, by name.
    PORTS             protocol that the core declares and only calls → a function or class that returns its
                      implementation. The core defines its arguments.
    DIALECTS          value of `agentv convert --from` → the `Dialect` of a tool's files (`dialects/recognition.py`).
    SIGNS             sign that a file is another tool's → the name of its dialect. Signs are `name:` and a pattern of
                      the file's name, which is conclusive; `keys:` and keys of a mapping, joined by `+`; `record:` and
                      keys of the first record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

_FOLDER = Path(__file__).parent.parent / "extensions"

NAMES = Path(__file__).with_name("extension_names.json")
"""File with kind → name → owner: an extension, installed or not, or `CORE`. `docs/website/generate.py` writes it."""

CORE = "core"
"""The owner of names that no plugin can add."""

HOW_TO_GET = "its folder was removed from agentv/extensions: install agentv again"
"""Hint for a missing extension."""

COMMANDS = "COMMANDS"
COMMAND_SECTIONS = "COMMAND_SECTIONS"
EXECUTORS = "EXECUTORS"
EXPORT_FORMATS = "EXPORT_FORMATS"
OPTIONS = "OPTIONS"
BESIDE_RUNS = "BESIDE_RUNS"
CONFIG_KEYS = "CONFIG_KEYS"
ENDPOINTS = "ENDPOINTS"
PAGES = "PAGES"
PROVIDERS = "PROVIDERS"
ASSERTIONS = "ASSERTIONS"
RETURNS = "RETURNS"
RECORDINGS = "RECORDINGS"
TRACE_FORMATS = "TRACE_FORMATS"
SUITE_KEYS = "SUITE_KEYS"
CASE_KEYS = "CASE_KEYS"
SCHEMA_DEFS = "SCHEMA_DEFS"
PORTS = "PORTS"
DIALECTS = "DIALECTS"
SIGNS = "SIGNS"


@cache
def extensions() -> Mapping[str, ModuleType]:
    """Return name → module of the extensions whose folders exist, sorted by name. The modules import nothing."""
    names = sorted(entry.name for entry in os.scandir(_FOLDER) if (Path(entry) / "__init__.py").is_file())
    return {name: import_module(f"agentv.extensions.{name}") for name in names}


def registered(kind: str) -> dict[str, str]:
    """Return name → import path of everything of a kind that extensions add."""
    return {name: place for module in extensions().values() for name, place in getattr(module, kind, {}).items()}


@cache
def loaded(kind: str, name: str) -> Any:
    """Import and return what an extension registered under a name."""
    return resolve_name(registered(kind)[name])


def kinds() -> list[str]:
    """Return the names of the tables that an extension can have."""
    return list(_owners())


def reserved(kind: str) -> set[str]:
    """Return the names of a kind that no plugin can add: those of the core and of all extensions."""
    return {*_owners().get(kind, {}), *registered(kind)}


def known(kind: str) -> list[str]:
    """Return the names of a kind that extensions add, including those of missing extensions."""
    return list(dict.fromkeys([*registered(kind), *missing(kind)]))


def lacking(kind: str, name: str) -> str | None:
    """Return `needs extension NAME` if a name belongs to a missing extension; None otherwise."""
    owner = _owners().get(kind, {}).get(name, CORE)
    return None if owner == CORE or owner in extensions() else f"needs extension {owner}"


def missing(kind: str) -> tuple[str, ...]:
    """Return the names of a kind that belong to missing extensions."""
    return tuple(name for name in _owners().get(kind, {}) if lacking(kind, name))


def owners() -> dict[str, dict[str, str]]:
    """Return kind → name → the extension that adds it, for writing `NAMES`; without the names of the core."""
    names = (name for module in extensions().values() for name in vars(module))
    found = {name for name in names if name.isupper() and not name.startswith("_")}
    return {
        kind: {name: owner for owner, module in extensions().items() for name in getattr(module, kind, {})}
        for kind in found
    }


@cache
def _owners() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(NAMES.read_bytes())
    return found
