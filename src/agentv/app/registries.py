"""Registries of the names that authored files can use, from agentv and from plugins. They do not depend on a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from agentv.assertions.catalogue import NOT_YET as TYPES_TO_COME
from agentv.assertions.catalogue import TYPES
from agentv.assertions.catalogue import registry as assertion_registry
from agentv.authoring.fields.request import Registries
from agentv.authoring.source.files import nearest_in_agentv
from agentv.authoring.source.nearest import ASSERTION_TYPES, provider_name, type_name
from agentv.errors import Diagnostic
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.response import Failure
from agentv.model.values.values import Span
from agentv.registry.extensions import ASSERTIONS, EXPORT_FORMATS, PORTS, PROVIDERS, kinds, loaded
from agentv.registry.plugins import LoadedPlugin, NameRules, Plugin, PluginSource, Problem
from agentv.registry.types import Discovered
from agentv.targets.catalogue import NOT_YET as PROVIDERS_TO_COME
from agentv.targets.catalogue import PROVIDERS as BUILT_IN_PROVIDERS
from agentv.targets.catalogue import registry as target_registry
from agentv.user_code.guard import ForeignError, foreign_code
from agentv.user_code.plugins import (
    code_of_plugin,
    import_plugin,
    installed_plugins,
    plugins_of,
    problem_with,
    source_of,
    source_of_extensions,
)
from agentv.work_ports import Sandboxes

if TYPE_CHECKING:
    from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
    from agentv.user_code.repositories import Repositories


BUILT_IN_REPORTS = frozenset(
    {"csv", "github", "html", "json", "jsonl", "junit", "markdown", "md", "sarif", "text", "xml"}
)
"""Names of the built-in formats of exports and command output, which plugins cannot take."""

_KEYS = ("assert", "config", "include", "min_score", "name", "negate", "required", "timeout_s", "transform", "type")


def source(kind: str) -> PluginSource:
    """Return the installed plugins of one kind. A plugin is imported when its name is first looked up."""
    rules = _rules().get(kind)
    return source_of(kind) if rules is None else PluginSource(plugins_of(kind), rules, load_plugin)


@cache
def _rules() -> Mapping[str, NameRules]:
    key = "it is a key of every entry of an 'assert' list"
    reserved = {name: key for one in (*_KEYS, "metric", "weight") for name in (one, one.replace("_", "-"))}
    return {
        ASSERTIONS: NameRules(frozenset({*TYPES, *TYPES_TO_COME, *ASSERTION_TYPES}), reserved, type_name),
        PROVIDERS: NameRules(
            frozenset({*BUILT_IN_PROVIDERS, *PROVIDERS_TO_COME}),
            {"default": "it is the name of a project's default target"},
            lambda name: (provider_name(name), False),
        ),
        EXPORT_FORMATS: NameRules(BUILT_IN_REPORTS, canonical=lambda name: (name.lower().removeprefix("."), False)),
    }


def load_plugin(plugin: Plugin) -> LoadedPlugin | Problem:
    """Import a plugin and check its object; return a Problem, with secrets redacted, if it cannot be used."""
    from agentv.app.plugin_checks import check  # loaded only if plugins are installed

    value = import_plugin(plugin)
    if not isinstance(value, Problem):
        try:
            with foreign_code("bad-plugin", plugin.title):
                check(plugin.kind, value)
                return LoadedPlugin(value, code_of_plugin(plugin))
        except ForeignError as error:
            value = problem_with(plugin, error.__cause__ or error)
    import os

    from agentv.authoring.source.masking import environment_secrets
    from agentv.model.redaction import Redactor

    return Problem(value.code, Redactor(environment_secrets(os.environ)).redact(value.message), value.hint)


def warnings() -> Iterator[Diagnostic]:
    """Yield problems with installed extensions and names of plugins, used or not, at the lines that register them."""
    if not installed_plugins():
        return
    extensions = source_of_extensions()
    found = [(one, extensions.find(one.name)) for one in extensions.plugins]
    for kind in kinds():
        found += source(kind).problems.items()
    for plugin, problem in found:
        if isinstance(problem, Problem):
            span = Span(plugin.file, plugin.line, plugin.column, plugin.line, plugin.column + len(plugin.name))
            yield Diagnostic(problem.code, problem.message, span, "warning", problem.hint)


def registries() -> Registries:
    """Return the registries that resolve the names in authored files."""
    known = assertion_registry(source(ASSERTIONS)), target_registry(source(PROVIDERS))
    found: dict[tuple[str, str], Discovered] = {}

    def discover(directory: str, root: str) -> Discovered:
        if (directory, root) not in found:
            folder, tried = nearest_in_agentv(directory, root, "assertions")
            made = Discovered({}, tuple(tried))
            if folder is not None:
                # loaded only if the project has its own assertions
                from agentv.assertions.user_code import custom

                made = custom.discover(directory, root, type_name)
            found[directory, root] = made
        return found[directory, root]

    repositories: list[Repositories] = []

    def checkout(wanted: RepositoryFile, env: Mapping[str, str]) -> Checkout | Unavailable:
        if not repositories:
            from agentv.user_code.repositories import (
                Repositories,  # loaded only if files name repositories
            )

            repositories.append(Repositories())
        return repositories[0].checkout(wanted, env)

    def sandbox(wanted: Sequence[SandboxName], network: Network) -> SandboxName | Failure:
        return sandboxes().choose(wanted, network)  # loaded only if a suite has workspaces

    return Registries(*known, discover, checkout, tuple(warnings()), sandbox)


def sandboxes() -> Sandboxes:
    """Return the sandboxes of the extension `agents`."""
    found: Sandboxes = loaded(PORTS, "Sandboxes")()
    return found
