"""The extensions that are here, and what each registers: names and places, as strings in its `__init__.py`.

Installed packages add to the same tables; `user_code/plugins.py` finds them. An extension may have these tables, each a
dict from names to places, `module:attribute`, where nothing else is said:

    COMMANDS          a subcommand.
    COMMAND_SECTIONS  a subcommand → its section in `agentv --help`: Run, Read, Judge, Agents, Share or, without this,
                      More.
    EXECUTORS         a value of `--executor` → what opens the executor of a prepared run's trials.
    EXPORT_FORMATS    a suffix of an exported file → a function from what is exported to the pieces of its text.
    OPTIONS           a command and a flag of it → the `click.Option`. Options of `eval` that are no settings are for
                      `BESIDE_RUNS`; those of `convert` are `DialectOption`s.
    BESIDE_RUNS       what goes on beside a run of the command line → a function of what is prepared, the values of
                      options of extensions that are no settings, and whether to be quiet. It returns what makes a
                      context manager around the run, out of what to call when the run's directory is open, and yields
                      what to call in its place; or None.
    CONFIG_KEYS       a key of `.agentv/config.yaml` → a function that reports what is wrong with its node.
    ENDPOINTS         a screen of the pages beside those of runs → a tuple of the `Endpoint`s of the API that it needs.
    PAGES             what a server shows of projects. `project` → a function of a `ProjectContext` and the address of
                      the static files that returns the application; `static` → a function that returns the route of
                      these files; `version` → one that returns the folder in their address.
    PROVIDERS         provider of targets → its settings, a frozen dataclass derived from
                      `registry.types.ProviderSettings`.
    ASSERTIONS        assertion type → its options, a dataclass derived from `registry.fields.DeclaredAssertion` that
                      grades.
    RETURNS           a kind of object that a function of a `python` target may return → a function of the object and
                      the last message that it was given, which returns its answer, a `Failure`, or None for another
                      kind.
    RECORDINGS        a value of `trace` of a `python` target → what makes a context manager, in which a call in a
                      worker is recorded; its method `trace` returns the `Trace`, and `problems` the Issues of a machine
                      that lacks what it needs.
    TRACE_FORMATS     a value of `agentv results export --format` → a function of a stored run and paths, which writes
                      the files and yields what it did, a line each.
    SUITE_KEYS        a key of eval files → the JSON Schema of what it may hold, where the core does not declare it. Who
                      reads it is a port.
    CASE_KEYS         the same of a key of a case.
    SCHEMA_DEFS       a part of the JSON Schema of eval files → a function that returns its definitions, by name.
    PORTS             a protocol that the core declares and only calls → what makes an object of it, as the core says.
    DIALECTS          a value of `agentv convert --from` → the `Dialect` of a tool's files (`dialects/recognition.py`).
    SIGNS             what shows that a file is another tool's → the name of its dialect: `name:` and a pattern of its
                      name, which is certain; `keys:` and keys, with `+` between them, that a mapping has; `record:` and
                      keys that the first record has.
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
"""Kind → name → the extension that adds it, of all extensions, or `CORE`; `docs/website/generate.py` writes it."""

CORE = "core"
"""Who has the names that no plugin can add."""

HOW_TO_GET = "its folder was removed from agentv/extensions: install agentv again"
"""What to do where an extension is lacking."""

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
    """Name → module of each extension whose folder is here, by name. The modules import nothing."""
    names = sorted(entry.name for entry in os.scandir(_FOLDER) if (Path(entry) / "__init__.py").is_file())
    return {name: import_module(f"agentv.extensions.{name}") for name in names}


def registered(kind: str) -> dict[str, str]:
    """Everything of a kind that extensions add: name → place."""
    return {name: place for module in extensions().values() for name, place in getattr(module, kind, {}).items()}


@cache
def loaded(kind: str, name: str) -> Any:
    """What an extension registered by a name, imported."""
    return resolve_name(registered(kind)[name])


def kinds() -> list[str]:
    """The tables that an extension can have."""
    return list(_owners())


def reserved(kind: str) -> set[str]:
    """The names of a kind that no plugin can add: those of the core and of all extensions."""
    return {*_owners().get(kind, {}), *registered(kind)}


def known(kind: str) -> list[str]:
    """The names of a kind that extensions add, whether or not they are here."""
    return list(dict.fromkeys([*registered(kind), *missing(kind)]))


def lacking(kind: str, name: str) -> str | None:
    """`needs extension NAME`, where a name is that of an extension whose folder is not here; None for others."""
    owner = _owners().get(kind, {}).get(name, CORE)
    return None if owner == CORE or owner in extensions() else f"needs extension {owner}"


def missing(kind: str) -> tuple[str, ...]:
    """The names of a kind whose extension is not here."""
    return tuple(name for name in _owners().get(kind, {}) if lacking(kind, name))


def owners() -> dict[str, dict[str, str]]:
    """Kind → name → the extension that adds it: what `NAMES` holds where all of them are here, without the core's."""
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
