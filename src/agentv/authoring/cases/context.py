"""Context for reading the cases of one suite: defaults, agent settings, authored cases, and notes about cases.

An extension reads agent settings, such as workspaces and tools. It is loaded when the first such key is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.judging import Judging
from agentv.authoring.cases.prompts import SuitePrompt, read_prompt, read_prompts
from agentv.authoring.fields import translation
from agentv.authoring.fields.case_keys import (
    NO_OPTIONS,
    CaseOptions,
    ClusterReader,
    merged_metadata,
    read_options,
    with_governance,
)
from agentv.authoring.fields.decode import shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.fields.schema import AuthoredCase, AuthoredDefaultTest, AuthoredSuite
from agentv.authoring.source.nodes import (
    NOWHERE,
    Canonical,
    MapNode,
    Node,
    Place,
    Scalar,
    holds_placeholder,
    is_empty,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.authoring.targets.registry import TargetRegistry
from agentv.errors import Diagnostic, Severity
from agentv.model.suite.files import GraderFiles
from agentv.model.suite.suite import Suite, TargetSpec
from agentv.model.suite.workspace import Network, SandboxName, Solution, Variant, WorkspaceSpec
from agentv.model.values.values import EMPTY, Json, JsonObject, Span
from agentv.registry.extensions import HOW_TO_GET, PORTS, lacking, loaded, missing
from agentv.registry.types import ChooseSandbox

if TYPE_CHECKING:
    from agentv.model.suite.suite import Case, SimulatedUser, SkillMinimums
    from agentv.model.suite.tools import ScriptedServer


class CaseDefaults(Struct, frozen=True):
    """Defaults of all cases, as nodes if a case's variables can still change them.

    Attributes:
        asserts: the assertions of `default_test`, then those of the suite.
        vars: `default_test.vars`, overridden by the variables of the command line.
        fixed: variables of the command line, which no case can override.
        replaces: a case's own `evaluators` replace the suite's (in a file with `evalcases:`).
        expand: a list in `vars` expands to one case per item, unless the case says otherwise.
        prompted: the input comes from `prompts` or `prompt`, even if they are invalid.
        prompts: the valid prompts.
        prompt: prompt for cases without an input.
        options: options of all cases.
        renders: a file with some of these defaults contains placeholders.
    """

    asserts: tuple[Node, ...] = ()
    input: Node | None = None
    input_files: Node | None = None
    vars: JsonObject = EMPTY
    fixed: JsonObject = EMPTY
    metadata: JsonObject = EMPTY
    threshold: float | None = None
    threshold_at: Place | None = None
    replaces: bool = False
    expand: bool = False
    prompted: bool = False
    prompts: tuple[SuitePrompt, ...] = ()
    prompt: SuitePrompt | None = None
    options: CaseOptions = NO_OPTIONS
    renders: bool = False


def read_defaults(
    authored: AuthoredSuite, root: MapNode, fixed: Mapping[str, Json], reading: Reading, *, replaces: bool
) -> CaseDefaults:
    """Read the defaults for cases from a suite's header.

    Args:
        authored: the header.
        root: its mapping, for positions.
        fixed: the variables of the command line.
        reading: the suite's `Reading`.
        replaces: a case's own `evaluators` replace the suite's.
    """
    base = CaseDefaults(
        asserts=() if authored.assert_ is None else (authored.assert_,),
        input=None if is_empty(authored.input) else authored.input,
        input_files=None if is_empty(authored.input_files) else authored.input_files,
        vars=dict(fixed) or EMPTY,
        fixed=dict(fixed) or EMPTY,
        replaces=replaces,
        prompted="prompts" in root.items or "prompt" in root.items,
        prompt=None if authored.prompt is None else read_prompt(authored.prompt, reading),
        prompts=() if authored.prompts is None else read_prompts(authored.prompts, reading),
        metadata=with_governance(authored.metadata, authored.governance, root.keys, reading.report),
        threshold=0.0 if authored.require_all and authored.threshold is None else None,  # the gates decide
    )
    node = authored.default_test
    if node is None or is_empty(node):
        return base
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip().startswith("file://"):
        found = _from_file(node, reading)
        if found is None:
            return base
        renders = holds_placeholder(found)
        node, reading = found, reading.rendering(reading.renders or renders)
    else:
        renders = False
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'default_test' must be a mapping")
        return base
    name = f"'{reading.report.spelled(node, 'default_test')}'"
    written = translation.default_test(node, reading)
    own: AuthoredDefaultTest = shape_of(AuthoredDefaultTest).read(written.items, written, reading, name)
    return replace(
        base,
        options=read_options(own.options, name, reading),
        renders=renders,
        asserts=base.asserts if own.assert_ is None else (own.assert_, *base.asserts),
        vars={**_object(own.vars, "vars", reading), **fixed} or EMPTY,
        metadata=merged_metadata(base.metadata, _object(own.metadata, "metadata", reading)),
        threshold=base.threshold if "threshold" not in written.items else own.threshold,
        threshold_at=getattr(written.get("threshold"), "at", None),
        expand=own.expand is True,
    )


def _from_file(node: Scalar, reading: Reading) -> Node | None:
    """The content of the file that `default_test` names; None if it cannot be read, which is reported."""
    text = str(node.value).strip()
    path = reading.find(Scalar(text, text, node.at), "file")
    content = reading.text_of(path, node) if path is not None else None
    if path is None or content is None:
        return None
    root, valid = read_yaml(path, content.encode(), reading.report)
    if root is None and valid:
        reading.report.error("missing-value", node, f"'{text}' is empty")
    return root


def _object(node: Node | None, key: str, reading: Reading) -> dict[str, Json]:
    if node is None or is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        reading.report.unfit(node, f"'{key}' must be a mapping")
        return {}
    found: dict[str, Json] = plain(node)
    return found


class WorkReader(Protocol):
    """Reads the agent settings of one suite and its cases. Errors are reported."""

    def variants(self, reading: Reading) -> tuple[Variant, ...]:
        """The variants of the suite."""

    def activation(self, node: Node, reading: Reading) -> tuple[Sequence[MapNode], SkillMinimums | None]:
        """The cases of `activation`, in the form of `tests`, and the minimums for every skill."""

    def workspace(self, case: AuthoredCase, reading: Reading) -> WorkspaceSpec | None:
        """The workspace of a case; None if it has none."""

    def tools(self, case: AuthoredCase, reading: Reading) -> tuple[ScriptedServer, ...]:
        """The scripted tools of a case."""

    def user(self, node: Node, reading: Reading, registry: TargetRegistry) -> SimulatedUser | None:
        """The simulated user of a case; None if it is invalid, which is reported."""

    def solution(self, case: AuthoredCase, tools: Sequence[ScriptedServer], reading: Reading) -> Solution | None:
        """The known solution of a case with these tools; None if it has none or it is invalid."""

    def check(self, case: Case, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets that cannot run a case in its workspace."""


class SuiteWork(Struct, frozen=True, dict=True):
    """The agent settings that all cases of a suite share.

    Attributes:
        authored: the keys of the suite.
        request: options of the command line. Only a run hashes the files of a workspace.
        workspace: the suite's `workspace` key, not read yet, or the directory of its agents.
        choose: chooses the sandbox; None if nothing is run.
    """

    authored: AuthoredSuite
    request: LoadRequest
    workspace: Node | None
    choose: ChooseSandbox | None

    @cached_property
    def has_workspaces(self) -> bool:
        """Whether all cases have a workspace."""
        keys = (self.workspace, self.authored.sandbox, self.authored.environment, self.authored.extensions)
        return self.varies or self.request.workspace_path is not None or any(one is not None for one in keys)

    @property
    def varies(self) -> bool:
        """Whether the suite has variants."""
        return not is_empty(self.authored.variants)

    @cached_property
    def reader(self) -> WorkReader:
        """The extension's reader of these settings and of those of cases."""
        reader: WorkReader = loaded(PORTS, "WorkReader")(self)
        return reader


def refuse_lacking(kind: str, node: MapNode, report: Report) -> None:
    """Report the keys of a suite or a case whose extension is not installed."""
    for key in missing(kind):
        if key in node.items:
            report.error("missing-extra", node.keys[key], f"'{key}' {lacking(kind, key)}", hint=HOW_TO_GET)


def directory_of_agents(targets: Iterable[TargetSpec], reading: Reading) -> Node | None:
    """The `cwd` of the agents, which is the workspace of a suite that names none; None if they have none."""
    agents = [one for one in targets if one.is_agent]
    named = {getattr(one.settings, "cwd", None): one.span or NOWHERE for one in agents}
    if len(named) > 1:
        message = "the agents have different directories in 'cwd', or only some of them have one"
        hint = "write 'workspace: {template: …}' in the eval file, which holds for all of them"
        reading.report.error("bad-value", next(iter(named.values())), message, hint=hint)
        return None
    directory, at = next(iter(named.items()), (None, NOWHERE))
    if directory is None:
        return None
    path = f"/{os.path.relpath(directory, reading.places.root)}"
    return Scalar(path, path, at)


_HINT = "send its calls through the gateway ('gateway: …' of the target), or limit the run: 'run: {budget_usd: …}'"
_NO_KEY = "set its API key, by which the gateway knows where to send its calls"


_UNCOUNTED = "send its calls through the gateway ('gateway: …' of the target), or check its trace: 'turns: {max: …}'"
_COUNTS = ("max_turns", "max_tool_calls")


class TrialLimits(Struct):
    """Checks the limits of the cases of one suite. Each limit is reported once per target.

    Attributes:
        request: says whether targets are called.
        shared: position of the suite's `limits.budget_usd`; None if it has none.
        counts: key of the suite's `run` that limits turns or tool calls → its position.
    """

    request: LoadRequest
    shared: Span | None = None
    counts: Mapping[str, Span] = field(default_factory=dict)
    _reported: set[tuple[Span, str]] = field(default_factory=set)

    def check_counts(self, case: MapNode, targets: Iterable[TargetSpec], report: Report) -> None:
        """Warn about limits on turns and tool calls for targets whose turns and tool calls are not counted."""
        places = {**self.counts, **places_of_counts(case)}
        for spec in targets if places else ():
            settings = spec.settings
            speaks = getattr(settings, "model_protocol", None) is not None or getattr(settings, "otel", False)
            is_free = getattr(settings, "free", False) or spec.calls not in ("program", "any-server")
            for key, place in places.items():
                if spec.is_agent or spec.upstream or speaks or is_free or (place, spec.name) in self._reported:
                    continue
                self._reported.add((place, spec.name))
                message = f"'{key}' has no effect on '{spec.name}': nothing counts what it does"
                report.add(Diagnostic("no-effect", message, place, "warning", _UNCOUNTED))

    def check(self, case: MapNode, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets for which the budget of a case, or else of the suite, cannot be enforced."""
        request = self.request
        place = place_of_budget(case) or self.shared
        if place is None or (request.for_run and not (request.asks and request.asks_targets)):
            return
        for spec in targets:
            settings = spec.settings
            is_counted = spec.upstream is not None or getattr(settings, "free", False)
            if is_counted or (place, spec.name) in self._reported:
                continue
            self._reported.add((place, spec.name))
            message = (
                f"model calls of '{spec.name}' do not pass the gateway, so this limit of a trial cannot be enforced"
            )
            speaks = getattr(settings, "model_protocol", None) is not None
            lacks_key = speaks and getattr(settings, "gateway", None) is not False
            severity: Severity = "warning" if lacks_key and not request.for_run else "error"
            report.add(Diagnostic("no-gateway", message, place, severity, _NO_KEY if lacks_key else _HINT))


def places_of_counts(node: Node | None) -> dict[str, Span]:
    """Key → position of the limits on turns and tool calls in a case, or in `run`."""
    keys = node.keys if isinstance(node, MapNode) else {}
    return {key: span_of(keys[key]) for key in _COUNTS if key in keys}


def place_of_budget(mapping: MapNode) -> Span | None:
    """Position of `limits.budget_usd` in a case or a suite."""
    limits: Node | None = mapping.get("limits")
    at = limits.keys.get("budget_usd") if isinstance(limits, MapNode) else None
    return None if at is None else span_of(at)


class WrittenCase(Struct, frozen=True):
    """An authored case with canonical keys.

    Attributes:
        keys: values by canonical name; if one is invalid, only those that are still nodes.
        node: the mapping that they were read from.
        not_missing: keys that are not reported as missing because they are misspelt or invalid.
        alone: it has its own input; False for a row of variables, which uses the suite's `input`.
        id_suffix: end of its id, if its entry expands to several cases.
    """

    keys: AuthoredCase
    node: Canonical
    not_missing: frozenset[str]
    alone: bool
    id_suffix: str = ""

    @property
    def has_turns(self) -> bool:
        """Whether it may have several turns: it sets `turns`, `mode` or `user`."""
        return self.scripted or self.keys.user is not None

    @property
    def scripted(self) -> bool:
        """Whether it sets `turns` or `mode`."""
        return self.keys.turns is not None or self.keys.mode is not None


class CaseContext(Struct, frozen=True):
    """Context in which all cases of one suite are read.

    Attributes:
        assertions: reads assertion lists, including custom types.
        registry: the targets that a case can name.
        suite: the suite, without cases.
        authored: the keys of the suite.
        clusters: determines the cluster of each case; None if each case or conversation is a cluster.
        work: the suite's agent settings; None if the extension that reads them is not installed.
        limits: checks the limits of trials.
    """

    defaults: CaseDefaults
    assertions: AssertionReader
    registry: TargetRegistry
    suite: Suite
    authored: AuthoredSuite
    request: LoadRequest
    clusters: ClusterReader | None
    work: SuiteWork | None
    limits: TrialLimits


class CaseNotes(Struct):
    """Notes about the cases read so far: what they need from their suite, and which are invalid.

    Attributes:
        graders: files that the grades of the cases depend on.
        judging: judges that their assertions need.
        ungated: a case uses the threshold of its suite, and none of its assertions is required.
        untargeted: a case has no target of its own.
        keyless: cases' own targets that lack a key, by name.
        seen: there is a case, valid or not.
        invalid: ids of the invalid cases → their positions.
        lost: the id of an invalid case cannot be read.
        users: models that play simulated users, by name.
        sandboxes: (sandboxes, network) of the cases' workspaces.
        existing: existing directories that cases use as workspaces.
    """

    graders: GraderFiles
    judging: Judging = field(default_factory=Judging)
    ungated: bool = False
    untargeted: bool = False
    keyless: dict[str, TargetSpec] = field(default_factory=dict)
    seen: bool = False
    invalid: dict[str, list[Span]] = field(default_factory=dict)
    lost: bool = False
    users: dict[str, TargetSpec] = field(default_factory=dict)
    sandboxes: set[tuple[tuple[SandboxName, ...], Network]] = field(default_factory=set)
    existing: set[str] = field(default_factory=set)
