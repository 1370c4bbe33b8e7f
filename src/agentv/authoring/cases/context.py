"""Context in which all cases of one suite are read, and notes that are collected on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.judging import Judging, judges
from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.cases.trial_budgets import TrialBudgets
from agentv.authoring.cases.work import SuiteWork
from agentv.authoring.fields.clusters import ClusterReader
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar, is_empty, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.targets.registry import TargetRegistry
from agentv.model.run.grade import reaches
from agentv.model.run.verdict import ZERO_HINT, excludes_nothing
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.grader_files import GraderFiles
from agentv.model.suite.search_paths import search_paths
from agentv.model.suite.suite import TargetSpec
from agentv.model.suite.workspace import Network, SandboxName
from agentv.model.values.span import Span


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
