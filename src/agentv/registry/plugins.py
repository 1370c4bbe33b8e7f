"""Plugins: entry points of installed packages, the rules for their names, and why one is not used."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, field

GROUPS: Mapping[str, str] = {
    "agentv.assertions": "ASSERTIONS",
    "agentv.targets": "PROVIDERS",
    "agentv.reports": "EXPORT_FORMATS",
}
"""Entry point group → kind of its entries, which is the name of an extension's table."""

EXTENSIONS = "agentv.extensions"
"""The entry point group of extensions, which is also the kind of its entries."""

_KIND_NAMES: Mapping[str, str] = {
    "ASSERTIONS": "assertion type",
    "EXPORT_FORMATS": "report format",
    "SIGNS": "sign of a dialect",
    EXTENSIONS: "extension",
}

ANY_NAME = re.compile(r".+", re.DOTALL)
"""Form of names that are not used in eval files."""

NAME = re.compile(r"[a-z][a-z0-9]*(?:[.-][a-z0-9]+)*")
"""Form of names that are used in eval files. ASCII only, because letters of other scripts may look the same."""


class Plugin(Struct, frozen=True):
    """A registration by an installed package: an entry point, or a name in a table of its extension.

    Attributes:
        kind: `EXTENSIONS`, or a table of an extension (`registry/extensions.py`).
        value: `package.module:Class`; for an extension, its module.
        package: name of the distribution.
        version: version of the distribution; empty if its metadata has none.
        file: its `entry_points.txt`, or the extension's module.
        line, column: position in `file`, from 1.
    """

    kind: str
    name: str
    value: str
    package: str
    version: str
    file: str
    line: int
    column: int = 1

    @property
    def owner(self) -> str:
        """The package and its version: `acme-evals 1.2`."""
        return f"{self.package} {self.version}".rstrip()

    @property
    def title(self) -> str:
        """The plugin's name in messages: `assertion type 'tone' of acme-evals 1.2`."""
        shown = f"'{self.name}'" if self.name.isascii() else ascii(self.name)
        return f"{words_of(self.kind)} {shown} of {self.owner}"


def words_of(kind: str) -> str:
    """Return the name of a kind in messages: `command`, `trace format`."""
    return _KIND_NAMES.get(kind) or kind.removesuffix("S").replace("_", " ").lower()


class Problem(Struct, frozen=True):
    """Why a plugin is not used.

    Attributes:
        code: `shadowed-plugin` if a built-in has its name, `bad-plugin` if it is broken.
        message: what is wrong, with the package and, if known, the file and line of the mistake.
        hint: the fix.
    """

    code: str
    message: str
    hint: str


class PluginCode(Struct, frozen=True):
    """The code of a loaded plugin, which is part of the keys of answers and grades.

    Attributes:
        title, owner: those of the `Plugin`.
        identity: package, version and SHA-256 of the files, which changes with the plugin.
    """

    title: str
    owner: str
    identity: str


class LoadedPlugin(Struct, frozen=True):
    """The object that a plugin registered, after it was checked, and the plugin's code."""

    value: object
    code: PluginCode


class NameRules(Struct, frozen=True):
    """Rules for the names of plugins of one kind.

    Attributes:
        built_in: names of built-ins, which take precedence.
        reserved: name → why no plugin may have it.
        canonical: function from a name as authored to the canonical name and whether `not-` inverts it.
        form: pattern of allowed names.
    """

    built_in: Collection[str]
    reserved: Mapping[str, str] = field(default_factory=dict)
    canonical: Callable[[str], tuple[str, bool]] = lambda name: (name, False)
    form: re.Pattern[str] = NAME


def problems_of(plugins: Sequence[Plugin], rules: NameRules) -> dict[Plugin, Problem]:
    """Return plugin → problem for plugins that cannot be used because of their names. Runs none of their code."""
    claimed = Counter(one.name for one in plugins)
    found: dict[Plugin, Problem] = {}
    for one in plugins:
        canonical, _ = rules.canonical(one.name)
        rename = f"ask its author to rename it, or remove it: pip uninstall {one.package}"
        why = _name_problem(one, rules)
        if canonical in rules.built_in and not one.name.startswith("not-"):
            reason = "is built in" if canonical == one.name else f"refers to the built-in '{canonical}'"
            message = f"{one.title} is not used: '{one.name}' {reason}, which is used instead"
            found[one] = Problem("shadowed-plugin", message, rename)
        elif why is not None:
            found[one] = Problem("bad-plugin", why, rename)
        elif claimed[one.name] > 1:
            owners = " and ".join(other.owner for other in plugins if other.name == one.name)
            message = f"{words_of(one.kind)} '{one.name}' is registered by {owners}, so neither is used"
            found[one] = Problem("bad-plugin", message, f"remove one of them: pip uninstall {one.package}")
    return found


def _name_problem(plugin: Plugin, rules: NameRules) -> str | None:
    _, inverted = rules.canonical(plugin.name)
    if not plugin.value:
        return f"{plugin.title} names nothing: its line must read NAME = module:Class"
    if inverted or plugin.name.startswith("not-"):
        return f"{plugin.title} has a reserved name: 'not-' in front of a name inverts the type"
    if plugin.name in rules.reserved:
        return f"{plugin.title} has a reserved name: {rules.reserved[plugin.name]}"
    if not rules.form.fullmatch(plugin.name):
        return f"the name of {plugin.title} must be lower-case letters and digits, with '-' or '.' between them"
    return None


LoadPlugin: TypeAlias = Callable[[Plugin], "LoadedPlugin | Problem"]


class PluginSource:
    """The plugins of one kind, for a registry.

    Args:
        plugins: the installed plugins.
        rules: rules for their names.
        load: imports and checks the object that a plugin registers.
    """

    def __init__(self, plugins: Iterable[Plugin], rules: NameRules, load: LoadPlugin) -> None:
        self.plugins = tuple(plugins)
        self.problems: Mapping[Plugin, Problem] = problems_of(self.plugins, rules)
        self._load = load
        self._found: dict[str, LoadedPlugin | Problem | None] = {}

    @property
    def places(self) -> dict[str, str]:
        """Name → import path of the plugins that may be used. Runs no code of a plugin."""
        return {one.name: one.value for one in self.plugins if one not in self.problems}

    def find(self, name: str) -> LoadedPlugin | Problem | None:
        """Load and return the plugin of a name, or a Problem if it cannot be used; None if none exists."""
        if name not in self._found:
            plugin = next((one for one in self.plugins if one.name == name), None)
            self._found[name] = None if plugin is None else self.problems.get(plugin) or self._load(plugin)
        return self._found[name]


NO_PLUGINS = PluginSource((), NameRules(()), lambda plugin: Problem("bad-plugin", plugin.title, ""))
"""The plugins of a registry that only has built-in names."""
