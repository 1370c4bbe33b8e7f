"""Assertion types, providers, and the registry that imports them by name on first use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, Protocol, TypeVar

from msgspec import NODEFAULT, Struct

from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.response import Failure
from agentv.model.values.usage import UNKNOWN, Ceiling
from agentv.model.values.values import Json
from agentv.registry.extensions import HOW_TO_GET, lacking
from agentv.registry.fields import Declared, DeclaredAssertion, Issue, options_of
from agentv.registry.plugins import NO_PLUGINS, LoadedPlugin, Plugin, PluginCode, PluginSource, Problem

if TYPE_CHECKING:
    from agentv.model.run.context import Assertion
    from agentv.model.suite.suite import TargetSpec, Variable
    from agentv.model.suite.tools import ModelUpstream
    from agentv.model.values.message import Block
    from agentv.ports import Executor, Target, TargetRequest


class AssertionType(Struct, frozen=True):
    """An assertion type.

    Attributes:
        name: canonical name.
        options: dataclass that declares its options and grades.
        plugin: the plugin that registers it; None: it is built in.
    """

    name: str
    options: type[DeclaredAssertion]
    plugin: PluginCode | None = None


class OpenAssertionType(Protocol):
    """An assertion type without declared options: a file in `.agentv/assertions/`."""

    @property
    def name(self) -> str:
        """The kebab-case name."""

    @property
    def short(self) -> str | None:
        """The option that a single value sets; None if none exists."""

    @property
    def options(self) -> tuple[str, ...] | None:
        """The names of its options; None if it accepts any."""

    def build(self, options: Mapping[str, Json]) -> Assertion | list[Issue]:
        """Return the assertion with these options, or every problem with them. Runs none of the author's code."""


Calls = Literal["nothing", "server", "any-server", "program"]


class ProviderSettings(Declared):
    """Base of a provider's settings, which are frozen and can connect to the target.

    Attributes:
        calls: where answers come from: `nothing` but its settings, a `server` of the provider, `any-server` whose
            address the author gives, or a `program`, which includes functions and libraries on this machine. Determines
            whether data may name such targets (`Provider.may_stand_in_data`), and how many files a trial opens.
        example: text after the colon in examples, if there is no `small_model`.
        model_names: prefixes of the names of its models, in lower case.
        finds_keys: whether a library finds keys in the environment itself, so that every variable that looks like a key
            is secret.
        embeds: whether its target is an Embedder.
        answers: whether it can be used as a target and as a judge.
        free: whether its calls cost nothing and use no tokens, so that budgets ignore them.
        confined: whether it works with a program that it starts inside the sandbox of the request.
        is_agent: whether it works on a case for minutes, so that users can watch and interrupt it.
        returns_context: whether its replies may contain the text that it retrieved.
        small_model: a small model of the provider for examples. It is also the judge if none is set and the provider's
            API key is the only one.
    """

    __slots__ = ()

    calls: ClassVar[Calls] = "program"
    example: ClassVar[str | None] = None
    model_names: ClassVar[tuple[str, ...]] = ()
    finds_keys: ClassVar[bool] = False
    embeds: ClassVar[bool] = False
    answers: ClassVar[bool] = True
    free: ClassVar[bool] = False
    confined: ClassVar[bool] = False
    is_agent: ClassVar[bool] = False
    returns_context: ClassVar[bool] = True
    small_model: ClassVar[str | None] = None

    def spares(self) -> Collection[str]:
        """Return names of settings that may come from the environment but are not needed with the other settings.

        For example, a server on this machine needs no API key.
        """
        return ()

    def reads(self, env: Mapping[str, str]) -> Iterable[Variable]:  # noqa: ARG002  # most libraries read nothing
        """Return variables, set in `env` or missing, that a library reads itself besides those of the fields."""
        return ()

    def refuses(self, block: Block) -> str | None:  # noqa: ARG002  # by default, it accepts all
        """Return why it cannot be sent a block of a message, to follow its name: `fetches no pictures, …`; or None."""
        return None

    def refuses_case(self, *, tools: bool, turns: bool) -> str | None:  # noqa: ARG002  # by default, it accepts all
        """Return why it cannot run a case with scripted tools, or with several turns, to follow its name; or None."""
        return None

    def endpoint(self) -> str | None:
        """Return the key of the shared rate limit, equal for settings that use one server with one API key.

        None if nothing outside this machine is called, so that there is no rate limit.
        """
        return None

    def elsewhere(self) -> str | None:
        """Return the server's address, in a form that may be shown, if it is not the provider's own; None otherwise.

        Prices are known per provider, and another server may have other prices.
        """
        return None

    def upstream(self, env: Mapping[str, str]) -> ModelUpstream | None:  # noqa: ARG002  # by default, none exists
        """Return the API to which the gateway forwards an agent's model calls; None if they do not use the gateway.

        Args:
            env: environment of the suite and of the target, which may contain keys.
        """
        return None

    def ceiling(self, request: TargetRequest) -> Ceiling:  # noqa: ARG002  # unknown by default
        """Return the maximum cost of one call, which a budget reserves before the call is made."""
        return UNKNOWN

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:  # noqa: ARG002  # unknown by default
        """Return the maximum cost of embedding all of these texts."""
        return UNKNOWN

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that is ready for calls. Nothing is started before its first call."""
        raise NotImplementedError


class Provider(Struct, frozen=True):
    """A provider of targets.

    Attributes:
        name: canonical name.
        settings: dataclass that declares its settings and connects.
        plugin: the plugin that registers it; None: it is built in.
    """

    name: str
    settings: type[ProviderSettings]
    plugin: PluginCode | None = None

    @property
    def shown(self) -> str:
        """An example of a target, as a `provider:rest` string."""
        rest = self.settings.small_model or self.settings.example
        return f"{self.name}:{rest}" if rest else self.name

    @property
    def of_models(self) -> bool:
        """Whether it calls a model API, with the name of the model as its short form."""
        return self.settings.calls == "server" and self.settings.short == "model"

    def may_stand_in_data(self, *, alone: bool) -> bool:
        """Return whether a row of data may name a target, which must call nothing, or a server that it cannot choose.

        Args:
            alone: whether the row sets only the text after the colon, such as a model; other settings may be addresses.
        """
        return self.settings.calls == "nothing" or (alone and self.settings.calls == "server")

    @property
    def bare(self) -> bool:
        """Whether its name alone denotes a target, because every setting has a default."""
        return all(default is not NODEFAULT for default in options_of(self.settings).values())


def summary_of(declared: object) -> str:
    """Return the first line of a docstring; "" if Python generated it for a dataclass."""
    text = (getattr(declared, "__doc__", None) or "").strip().split("\n", 1)[0]
    return "" if text.startswith(f"{getattr(declared, '__name__', '')}(") else text


class RunData(Struct, frozen=True):
    """The data of a run for a plugin's report format. `docs/reference/results.md` has the keys; secrets are redacted.

    Attributes:
        run_id: id of the run.
        record: `run.json`: what was run.
        summary: `summary.json`: totals of the whole run.
        rows: the selected rows of `index.jsonl`, in the order in which trials ended. Can be iterated once.
    """

    run_id: str
    record: Mapping[str, Json]
    summary: Mapping[str, Json]
    rows: Iterable[Mapping[str, Json]]


class ReportFormat(Struct, frozen=True):
    """A plugin's report format, with a function that returns a file's text from a run, whole or in pieces."""

    name: str
    render: Callable[[RunData], str | Iterable[str]]
    plugin: PluginCode


CustomTypes = Callable[[str, str], "Discovered"]
"""(directory of the eval file, repository root) → the custom assertion types available there."""


class Discovered(Struct, frozen=True):
    """Custom assertion types for one directory, the directories that were searched, and issues by file."""

    types: Mapping[str, OpenAssertionType]
    searched: tuple[str, ...]
    issues: Iterable[tuple[str, Issue]] = ()


Checkouts = Callable[[RepositoryFile, Mapping[str, str]], "Checkout | Unavailable"]
"""(file of a repository, environment of the process) → its location on disk, fetched if necessary."""

ChooseSandbox = Callable[[Sequence[SandboxName], Network], "SandboxName | Failure"]
"""Returns the first sandbox that works here and supports the network, or a Failure that says why none does."""


T = TypeVar("T")


class Registry(Struct, Generic[T], eq=False):
    """Registry of declarations by name. The object of a name is imported when it is first looked up.

    Attributes:
        what: kind of object in messages: "assertion type", "provider".
        table: name → `package.module:Class`.
        make: returns the value of `find`, from the name, the imported class and, for a plugin, its code.
        kind: kind of extensions' registrations in the table, to recognize names of missing extensions.
        not_yet: names that are recognized but not supported yet.
        plugins: plugins for names that are not in the table.
    """

    what: str
    table: Mapping[str, str]
    make: Callable[..., T]
    kind: str = ""
    not_yet: frozenset[str] = frozenset()
    plugins: PluginSource = NO_PLUGINS
    _found: dict[str, T | None] = {}

    def __iter__(self) -> Iterator[str]:
        """Iterate over the built-in names, in the order of the table."""
        return iter(self.table)

    @property
    def names(self) -> Iterator[str]:
        """The names that may be used: the built-in ones, then those of plugins."""
        yield from self.table
        yield from sorted(self.plugins.places)

    def plugin(self, name: str) -> Plugin | None:
        """Return the plugin of a name that is not built in, even if it has a problem, without loading it; or None."""
        return next((one for one in self.plugins.plugins if one.name == name and name not in self.table), None)

    def find(self, name: str) -> T | None:
        """Return the declaration of a name; None if it is unknown, or if its plugin is broken (see `problem`)."""
        if name not in self._found:
            made = None
            if name in self.table:
                made = self.make(name, resolve_name(self.table[name]))
            elif name not in self.not_yet and isinstance(found := self.plugins.find(name), LoadedPlugin):
                made = self.make(name, found.value, found.code)
            self._found[name] = made
        return self._found[name]

    def problem(self, name: str) -> Problem | None:
        """Return why a name cannot be used: its extension is missing or its plugin has a problem; None otherwise."""
        if name in self.table or name in self.not_yet:
            return None
        if needs := lacking(self.kind, name):
            return Problem("missing-extra", f"the {self.what} '{name}' {needs}", HOW_TO_GET)
        found = self.plugins.find(name)
        return found if isinstance(found, Problem) else None
