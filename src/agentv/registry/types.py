"""Descriptions of assertion types and providers, and the registry that loads them by name on first use."""

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
    """An assertion type: its canonical name, and the dataclass that declares its options and grades.

    Attributes:
        plugin: whose code it is; None: it is built in.
    """

    name: str
    options: type[DeclaredAssertion]
    plugin: PluginCode | None = None


class OpenAssertionType(Protocol):
    """An assertion type whose options are its author's own: a file in `.agentv/assertions/`."""

    @property
    def name(self) -> str:
        """The kebab-case name."""

    @property
    def short(self) -> str | None:
        """The option that a lone value fills."""

    @property
    def options(self) -> tuple[str, ...] | None:
        """The names that it takes; None: any."""

    def build(self, options: Mapping[str, Json]) -> Assertion | list[Issue]:
        """The assertion with these options, or all that is wrong with them. Runs none of the author's code."""


Calls = Literal["nothing", "server", "any-server", "program"]


class ProviderSettings(Declared):
    """Base of the settings of a provider: frozen options, and how to connect with them.

    Attributes:
        calls: what an answer comes from: `nothing` but its settings, a `server` of the provider, `any-server` whose
            address the author gives, or a `program`, a function or a library on this machine. Data may name targets
            by it (`Provider.may_stand_in_data`), and it determines how many files a trial opens.
        example: what to write after the colon in an example, if not a `small_model`.
        model_names: how the names of its models begin, in small letters.
        finds_keys: a library finds keys in the environment by itself, so every variable that looks like one is secret.
        embeds: its target is an Embedder.
        answers: it can be used as a target and as a judge.
        free: its calls cost nothing and use no tokens, so budgets ignore them.
        confined: it works on a case by a program that it starts inside the sandbox of the request.
        is_agent: it works on a case for minutes, so that people see what it does and can end it.
        returns_context: its replies may contain the text that it retrieved.
        small_model: a small model of the provider: it stands in examples, and judges where no judge is named and the
            provider's key is the only one.
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
        """Of the settings that only the environment could give still, those that are not needed as the others are.

        A server on this machine, for one, wants no key.
        """
        return ()

    def reads(self, env: Mapping[str, str]) -> Iterable[Variable]:  # noqa: ARG002  # most libraries read nothing
        """Variables that a library reads by itself, besides those of the fields; in `env`, or missing."""
        return ()

    def refuses(self, block: Block) -> str | None:  # noqa: ARG002  # most take all
        """Why a block of a message cannot be sent, after the target's name: `fetches no pictures, …`; None: it can."""
        return None

    def refuses_case(self, *, tools: bool, turns: bool) -> str | None:  # noqa: ARG002  # as above
        """Why it cannot be given a case with scripted tools, or with several turns, after its name; None: it can."""
        return None

    def endpoint(self) -> str | None:
        """Key of the shared rate limit: equal for settings that use one server with one API key.

        None: nothing outside this machine is called, so calls need not be slowed down.
        """
        return None

    def elsewhere(self) -> str | None:
        """The server's address if it is not the provider's own, in a form that may be shown.

        Prices are known per provider: another server may have other prices, or none.
        """
        return None

    def upstream(self, env: Mapping[str, str]) -> ModelUpstream | None:  # noqa: ARG002  # most call no model by the gateway
        """The API that the gateway forwards the model calls of an agent to; None: they do not pass the gateway.

        Args:
            env: the environment of the suite and of the target, in which keys may stand.
        """
        return None

    def ceiling(self, request: TargetRequest) -> Ceiling:  # noqa: ARG002  # most do not know
        """Maximum cost of one call, which a budget reserves before the call is made."""
        return UNKNOWN

    def ceiling_of_vectors(self, texts: Sequence[str]) -> Ceiling:  # noqa: ARG002  # as above
        """Maximum cost of embedding these texts, all together."""
        return UNKNOWN

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """A target that is ready for calls. Nothing is started before its first call."""
        raise NotImplementedError


class Provider(Struct, frozen=True):
    """A provider of targets: its canonical name, and the dataclass that declares its settings and connects.

    Attributes:
        plugin: whose code it is; None: it is built in.
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
        """Whether it calls the API of models by their names."""
        return self.settings.calls == "server" and self.settings.short == "model"

    def may_stand_in_data(self, *, alone: bool) -> bool:
        """Whether rows of data may name a target: one that calls nothing, or a server that is not the row's choice.

        Args:
            alone: the row gives only what follows the colon, such as a model; other settings may be addresses.
        """
        return self.settings.calls == "nothing" or (alone and self.settings.calls == "server")

    @property
    def bare(self) -> bool:
        """Whether its name alone is a target, because every setting has a default."""
        return all(default is not NODEFAULT for default in options_of(self.settings).values())


def summary_of(declared: object) -> str:
    """The first line of a docstring; nothing where a dataclass has the one that Python made."""
    text = (getattr(declared, "__doc__", None) or "").strip().split("\n", 1)[0]
    return "" if text.startswith(f"{getattr(declared, '__name__', '')}(") else text


class RunData(Struct, frozen=True):
    """A run as a report of a plugin gets it. The keys are those of `docs/reference/results.md`; secrets are redacted.

    Attributes:
        run_id: of the run.
        record: `run.json`: what was run.
        summary: `summary.json`: the totals of the whole run.
        rows: the rows of `index.jsonl` that were chosen, in the order in which trials ended. To be read once.
    """

    run_id: str
    record: Mapping[str, Json]
    summary: Mapping[str, Json]
    rows: Iterable[Mapping[str, Json]]


class ReportFormat(Struct, frozen=True):
    """A format that a plugin writes runs in: what turns a run into the text of a file, whole or in pieces."""

    name: str
    render: Callable[[RunData], str | Iterable[str]]
    plugin: PluginCode


CustomTypes = Callable[[str, str], "Discovered"]
"""(directory of the eval file, repository root) → the custom assertion types in reach."""


class Discovered(Struct, frozen=True):
    """Custom assertion types found for one directory, where was looked, and what is wrong there."""

    types: Mapping[str, OpenAssertionType]
    searched: tuple[str, ...]
    issues: Iterable[tuple[str, Issue]] = ()


Checkouts = Callable[[RepositoryFile, Mapping[str, str]], "Checkout | Unavailable"]
"""(a file of a repository, the environment of the process) → where it lies on disk; fetched where it must be."""

ChooseSandbox = Callable[[Sequence[SandboxName], Network], "SandboxName | Failure"]
"""The first sandbox that works here and gives this network; why none does."""


T = TypeVar("T")


class Registry(Struct, Generic[T], eq=False):
    """Registry from names to declarations. The object of a name is imported when it is first looked up.

    Attributes:
        what: kind of object for messages: "assertion type", "provider".
        table: name → `package.module:Class`.
        make: converts the name and the loaded class, and the code of a plugin, into the value that `find` returns.
        kind: of what extensions add to the table, so that it is known which names lack their extension.
        not_yet: names that are recognized but not supported yet.
        plugins: searched for names that the table lacks.
    """

    what: str
    table: Mapping[str, str]
    make: Callable[..., T]
    kind: str = ""
    not_yet: frozenset[str] = frozenset()
    plugins: PluginSource = NO_PLUGINS
    _found: dict[str, T | None] = {}

    def __iter__(self) -> Iterator[str]:
        """The built-in names, in the order of the table."""
        return iter(self.table)

    @property
    def names(self) -> Iterator[str]:
        """Every name that may be used: the built-in ones, then those of plugins."""
        yield from self.table
        yield from sorted(self.plugins.places)

    def plugin(self, name: str) -> Plugin | None:
        """The plugin that would be used for a name, were nothing else in its way. Not loaded."""
        return next((one for one in self.plugins.plugins if one.name == name and name not in self.table), None)

    def find(self, name: str) -> T | None:
        """Look a name up; None if it is unknown, or if its plugin is broken (`problem`)."""
        if name not in self._found:
            made = None
            if name in self.table:
                made = self.make(name, resolve_name(self.table[name]))
            elif name not in self.not_yet and isinstance(found := self.plugins.find(name), LoadedPlugin):
                made = self.make(name, found.value, found.code)
            self._found[name] = made
        return self._found[name]

    def problem(self, name: str) -> Problem | None:
        """Why this name, or a plugin of it, cannot be used."""
        if name in self.table or name in self.not_yet:
            return None
        if needs := lacking(self.kind, name):
            return Problem("missing-extra", f"the {self.what} '{name}' {needs}", HOW_TO_GET)
        found = self.plugins.find(name)
        return found if isinstance(found, Problem) else None
