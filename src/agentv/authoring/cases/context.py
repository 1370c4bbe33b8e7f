"""What the cases of one suite are read with, a case as authored, and notes that are collected on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct, field

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.judging import Judging, judges
from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.cases.work import SuiteWork
from agentv.authoring.fields.case_keys import ClusterReader
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.request import LoadRequest
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.source.nodes import Canonical, MapNode, Node, Place, Scalar, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.errors import Diagnostic, Severity
from agentv.model.run.grade import reaches
from agentv.model.run.verdict import ZERO_HINT, excludes_nothing
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.grader_files import GraderFiles, search_paths
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.span import Span

_HINT = "send its calls through the gateway ('gateway: …' of the target), or limit the run: 'run: {budget_usd: …}'"
_NO_KEY = "set its API key, by which the gateway knows where to send its calls"


class TrialBudgets(Struct):
    """Checks the budgets of the cases of one suite. Each place is reported once for each target.

    Attributes:
        request: says whether targets are called.
        shared: position of the suite's `limits.budget_usd`; None: it has none.
    """

    request: LoadRequest
    shared: Span | None = None
    _reported: set[tuple[Span, str]] = field(default_factory=set)

    def check(self, case: MapNode, targets: Iterable[TargetSpec], report: Report) -> None:
        """Report targets for which the budget of a case cannot be enforced; its own wins over the suite's."""
        request = self.request
        place = place_of_budget(case) or self.shared
        if place is None or (request.for_run and not (request.asks and request.asks_targets)):
            return
        for spec in targets:
            if _is_counted(spec) or (place, spec.name) in self._reported:
                continue
            self._reported.add((place, spec.name))
            message = (
                f"model calls of '{spec.name}' do not pass the gateway, so this limit of a trial cannot be enforced"
            )
            lacks_key = _lacks_key(spec)
            severity: Severity = "warning" if lacks_key and not request.for_run else "error"
            report.add(Diagnostic("no-gateway", message, place, severity, _NO_KEY if lacks_key else _HINT))


def place_of_budget(mapping: MapNode) -> Span | None:
    """Position of `limits.budget_usd` in a case or a suite."""
    limits: Node | None = mapping.get("limits")
    at = limits.keys.get("budget_usd") if isinstance(limits, MapNode) else None
    return None if at is None else span_of(at)


def _lacks_key(spec: TargetSpec) -> bool:
    """Whether its calls pass the gateway as soon as its key is known."""
    settings = spec.settings
    return getattr(settings, "model_protocol", None) is not None and getattr(settings, "gateway", None) is not False


def _is_counted(spec: TargetSpec) -> bool:
    return spec.upstream is not None or bool(getattr(spec.settings, "free", False))


_SCHEMA = shape_of(AuthoredCase)
_OF_TURNS = frozenset({"aggregation", "on_turn_failure", "window_size"})


class WrittenCase(Struct, frozen=True):
    """A case by its canonical keys.

    Attributes:
        keys: by canonical name; if one is invalid, only those that are passed on unread.
        not_missing: keys that are not reported as missing because they were misspelt, or are invalid.
        alone: it has its own input; a row of variables uses the suite's `input`.
        id_suffix: the end of its id, if it is one of several cases of an entry.
    """

    keys: AuthoredCase
    node: Canonical
    not_missing: frozenset[str]
    alone: bool
    id_suffix: str = ""

    @property
    def linked(self) -> bool:
        """Whether it is linked to other cases."""
        return self.keys.conversation_id is not None or self.keys.depends_on is not None

    @property
    def has_turns(self) -> bool:
        """Whether it has several turns, or a key for them."""
        return self.scripted or self.keys.user is not None

    @property
    def scripted(self) -> bool:
        """Whether its turns are written down, or the key for them."""
        return self.keys.turns is not None or self.keys.mode is not None

    def check_flow(self, report: Report) -> None:
        """Report keys about turns in a case that has none."""
        for key in _OF_TURNS & self.node.items.keys():
            asked = self.has_turns if key == "window_size" else self.scripted
            if getattr(self.keys, key) is not None and not asked and "turns" not in self.not_missing:
                report.error("bad-value", self.node.keys[key], f"'{key}' needs 'turns'")


def read_written(node: Canonical, reading: Reading, *, alone: bool, id_suffix: str) -> WrittenCase:
    """A case by its canonical keys; what is wrong with them is reported.

    Args:
        node: the case.
        reading: of this case alone.
        alone: it brings an input of its own.
        id_suffix: the end of its id.
    """
    report = reading.report
    keys = _SCHEMA.decode(node.items, node, reading, "a case")
    if keys is INVALID:
        keys = _SCHEMA.unread(node.items)
    if is_empty(node.get("id")) and "id" not in node.not_missing:
        report.error("missing-key", node.get("id") or node, "a case needs 'id'")
    case = WrittenCase(keys, node, node.not_missing, alone, id_suffix)
    case.check_flow(report)
    return case


class ZeroThresholds(Struct):
    """Checks the thresholds of one suite.

    Attributes:
        open: a case uses the threshold of its suite, and none of its assertions is required.
    """

    open: bool = False

    def look(self, own: float | None, entries: Sequence[AssertionEntry], at: MapNode, report: Report) -> None:
        """One more case, with the threshold of its own."""
        if own is None:
            self.open = self.open or excludes_nothing(0.0, entries)
        elif excludes_nothing(own, entries):
            message = "with threshold: 0, every answer passes this case"
            report.warning("zero-threshold", at.items["threshold"], message, hint=ZERO_HINT)

    def close(self, threshold: float | None, at: Place | None, report: Report) -> None:
        """Finish after the last case; this is the threshold of cases without their own."""
        if self.open and threshold is not None and reaches(0.0, threshold):
            message = "with threshold: 0, every answer passes"
            report.warning("zero-threshold", at, message, hint=ZERO_HINT)


class CaseContext(Struct, frozen=True):
    """Context in which all cases of one suite are read.

    Attributes:
        assertions: reads assertion lists, including custom types.
        registry: the targets that a case can name.
        root: of the repository; paths of a case are relative to it in its hash.
        targets: of the suite.
        targets_win: they override the target that a case names, because the command line names them.
        require_all: every assertion is required.
        show_only: cases may check nothing.
        clusters: determines the cluster of each case; None: the case, or its conversation, is one.
        on_case: called with every case as authored, valid or not.
        work: what is written of the work of agents; None: the extension that reads it is not here.
        budgets: checks the budgets of their trials.
    """

    defaults: CaseDefaults
    assertions: AssertionReader
    registry: TargetRegistry
    env: Mapping[str, str]
    root: str
    targets: tuple[TargetSpec, ...] = ()
    targets_win: bool = False
    require_all: bool = False
    show_only: bool = False
    clusters: ClusterReader | None = None
    on_case: Callable[[MapNode], None] | None = None
    work: SuiteWork | None = None
    budgets: TrialBudgets | None = None


class CaseNotes(Struct):
    """Notes about the cases read so far: what they need from their suite, and which are invalid.

    Attributes:
        graders: files that the grades of the cases depend on.
        judging: judges that their assertions need.
        zero: whether they would pass at a threshold of 0.
        untargeted: a case has no target of its own.
        keyless: cases' own targets that lack a key, by name.
        seen: there is a case, valid or not.
        invalid: ids of the invalid cases → their positions.
        lost: a case is invalid and its id cannot be read.
        users: models that play simulated users, by name.
        sandboxes, existing: named by the workspaces of cases.
    """

    graders: GraderFiles
    judging: Judging = field(default_factory=Judging)
    zero: ZeroThresholds = field(default_factory=ZeroThresholds)
    untargeted: bool = False
    keyless: dict[str, TargetSpec] = field(default_factory=dict)
    seen: bool = False
    invalid: dict[str, list[Span]] = field(default_factory=dict)
    lost: bool = False
    users: dict[str, TargetSpec] = field(default_factory=dict)
    sandboxes: set[tuple[tuple[SandboxName, ...], Network]] = field(default_factory=set)
    existing: set[str] = field(default_factory=set)

    @classmethod
    def of_env(cls, env: Mapping[str, str]) -> CaseNotes:
        """No case was read yet; the files of graders are looked for where the environment says."""
        return cls(GraderFiles(search=search_paths(env)))

    def add_invalid(self, identity: Node | None, node: MapNode) -> None:
        """Note a case that is wrong."""
        if not isinstance(identity, Scalar) or is_empty(identity):
            self.lost = True
            return
        place = span_of(node.at)
        spans = self.invalid.setdefault(identity.text, [])
        if not any(place[:2] == one[:2] for one in spans):  # a case of several prompts is read for each
            spans.append(place)

    def add_own_targets(
        self, target: TargetSpec | None, judge: TargetSpec | None, graded: tuple[AssertionEntry, ...]
    ) -> None:
        """Note the target and the judge that a case has for itself."""
        if target is not None and target.judge:
            self.judging.of_cases.setdefault(target.judge, target.name)
        if target is not None and target.missing:
            self.keyless.setdefault(target.name, target)
        if judge is not None and judge.missing and any(map(judges, graded)):
            self.judging.keyless.setdefault(judge.name, judge)
