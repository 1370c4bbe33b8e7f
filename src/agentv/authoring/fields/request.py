"""The request to the loader, and the registries in which it looks names up."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from agentv.authoring.source.nodes import MapNode
from agentv.errors import Diagnostic
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.workspace import KeepWorkspaces, SandboxName
from agentv.model.values.values import Json, Span
from agentv.registry.types import AssertionType, Checkouts, ChooseSandbox, CustomTypes, Provider, Registry


class Registries(Struct, frozen=True):
    """Where names are looked up: assertion types, providers, custom types of a directory, and files on git hosts.

    Attributes:
        warnings: warnings about plugins with invalid names.
        sandbox: chooses a sandbox that works on this machine; None: all are assumed to work.
    """

    assertions: Registry[AssertionType]
    providers: Registry[Provider]
    custom: CustomTypes
    checkouts: Checkouts
    warnings: tuple[Diagnostic, ...] = ()
    sandbox: ChooseSandbox | None = None


class LoadRequest(Struct, frozen=True):
    """What to load, and the command-line options that affect loading.

    Attributes:
        targets, judge: names or `provider:rest` strings; they override the files.
        variables: override `vars` of every case.
        process_env: the environment of the process; overrides `env:` and `.env`.
        env_file: a `.env` file to read instead of those found above the eval file.
        documents: content of eval files as plain data; paths are relative to the working directory.
        given_target, given_judge: Python objects; they override all others.
        edits: absolute path → content to read instead of the file, to test the effect of a change.
        on_case: called with every case as authored, valid or not.
        on_header: called with the outermost mapping of an eval file, or of a sidecar, as authored.
        on_path: called for every path in the suite, with the path as authored, its position, and the file.
        cluster: the `cluster` of every suite, overriding its own.
        workspace_path: absolute path of an existing directory that every case works in.
        sandbox, keep_workspaces: settings of every workspace, overriding the files.
        makes: run Python code that generates cases, even if `for_run` is False.
        asks: models may be called; if False, API keys may be missing.
        lists: the cases are only listed, so that judges may be missing too.
        asks_targets: targets are called; if False, only judges are.
        first_messages: simulated users write only their first message, without a model.
        allow_outside: also read files outside the repository; their content is not quoted.
        tests_from: a path or dataset from the command line that replaces the cases of every suite.
        trust_data: rows that `tests:` includes, and CSV files, may name code and read the environment.
        dialect: dialect of every path; None: recognized from each file.
        for_run: False for `validate`: no target is needed, and an unset environment variable is a warning.
    """

    paths: tuple[str, ...]
    targets: tuple[str, ...] = ()
    judge: str | None = None
    variables: Mapping[str, Json] = field(default_factory=dict)
    process_env: Mapping[str, str] = field(default_factory=dict)
    env_file: str | None = None
    documents: tuple[Mapping[str, Json], ...] = ()
    given_target: TargetSpec | Mapping[str, Json] | None = None
    given_judge: TargetSpec | Mapping[str, Json] | None = None
    edits: Mapping[str, bytes] = field(default_factory=dict)
    on_case: Callable[[MapNode], None] | None = None
    on_header: Callable[[MapNode], None] | None = None
    on_path: Callable[[str, Span, str], None] | None = None
    cluster: str | None = None
    tests_from: str | None = None
    makes: bool = False
    workspace_path: str | None = None
    sandbox: SandboxName | None = None
    keep_workspaces: KeepWorkspaces | None = None
    asks: bool = True
    lists: bool = False
    asks_targets: bool = True
    first_messages: bool = False
    allow_outside: bool = False
    trust_data: bool = False
    dialect: str | None = None
    for_run: bool = True

    @property
    def targets_win(self) -> bool:
        """Whether the targets override the one that a case names."""
        return bool(self.targets) or self.given_target is not None
