"""One authored case, with what its suite adds, as a Case (SPEC sections 4 and 7.4)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import msgspec

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.exam_gates import as_gate
from agentv.authoring.assertions.graded import assertions_of, check_graded, reads_criteria, turn_facts
from agentv.authoring.assertions.judging import Judging, judges
from agentv.authoring.assertions.needs import Facts, check_needs, need_nothing
from agentv.authoring.assertions.zero_thresholds import ZeroThresholds
from agentv.authoring.cases.defaults import CaseDefaults
from agentv.authoring.cases.dependencies import read_dependencies
from agentv.authoring.cases.expansion import expands, variants
from agentv.authoring.cases.matrix import Around, PromptMatrix
from agentv.authoring.cases.messages import read_criteria, read_files, read_messages, with_files
from agentv.authoring.cases.turns import TurnReader
from agentv.authoring.code.fingerprints import fingerprint
from agentv.authoring.fields.clusters import ClusterReader
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import SHOWN_KEYS, ExtraKeys, Reading
from agentv.authoring.fields.schema import AuthoredCase
from agentv.authoring.fields.tags import read_tags
from agentv.authoring.source.files import without_home
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Scalar,
    holds_placeholder,
    is_empty,
    kind_of,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.spellings import CASE, MEANT, Translated, translate
from agentv.authoring.targets.attachments import check_attachments
from agentv.authoring.targets.registry import TargetBook
from agentv.model.suite.assertion import AssertionEntry
from agentv.model.suite.conversation import Turn
from agentv.model.suite.grader_files import GraderFiles
from agentv.model.suite.search_paths import search_paths
from agentv.model.suite.suite import Case, TargetSpec
from agentv.model.values.message import Message
from agentv.model.values.span import Span
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.templating import Scope
from agentv.user_code.load_limit import begin_record

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

_CHECKS = frozenset({"assert", "criteria", "rubrics"})
"""Keys that give a case something to check."""


class CaseReader:
    """Reads the cases of one suite.

    Attributes:
        judging: what the assertions read so far ask of judges.
        zero: whether the cases read so far would pass at a threshold of 0.
        graders: the files that the grades of the cases read so far hang on.
        untargeted: a case names no target of its own.
        keyless: targets that cases name for themselves and that lack a key, by their names.
        seen: there is a case, right or wrong.
        witness: gets every case as it is written.
        asked: the suite's targets.
        flagged: those are asked whatever a case says.
        exam: they are a prompt's: every assertion is a gate, and no score decides.
        unread: ids of the cases that are wrong, and where each of them stands.
        lost: a case is wrong whose id cannot be read.
        clusters: finds the cluster of each case; None: a case is one, or its conversation.
    """

    def __init__(
        self, defaults: CaseDefaults, assertions: AssertionReader, book: TargetBook, env: Mapping[str, str], root: str
    ) -> None:
        self.judging = Judging()
        self.zero = ZeroThresholds()
        self.graders = GraderFiles(search=search_paths(env))
        self.untargeted = False
        self.keyless: dict[str, TargetSpec] = {}
        self.seen = False
        self.witness: Callable[[MapNode], None] | None = None
        self.asked: tuple[TargetSpec, ...] = ()
        self.flagged = False
        self.exam = False
        self.unread: dict[str, list[Span]] = {}
        self.lost = False
        self.clusters: ClusterReader | None = None
        self._defaults = defaults
        self._assertions = assertions
        self._turn_reader = TurnReader(assertions, reads_criteria)
        self._book = book
        self._env = env
        self._root = _encode(root)[1:-1] if root != "/" else b"\x00"
        self._shape = shape_of(AuthoredCase)
        self._others = ExtraKeys(hinted=tuple(CASE.known))
        prompts = defaults.prompts
        self._matrix = PromptMatrix(prompts, lambda facts: self._digest(facts, ())) if prompts else None
        self._shared: tuple[AssertionEntry, ...] | None = None
        self._broken = False

    def begin(self, reading: Reading) -> Reading:
        """Read what holds for all cases, where no variable can change it; the reading for cases without variables."""
        reading = reading.within(Scope(self._defaults.vars, self._env))
        nodes = [node for node in (self._defaults.test_assert, self._defaults.assert_) if node is not None]
        if any(holds_placeholder(node) for node in nodes):
            return reading
        own = reading.report.beside()
        shared = self._lists(nodes, replace(reading, report=own, renders=False))
        if self._assertions.templates.rendered:
            return reading  # a template holds placeholders: what was found says nothing about any case
        for found in own.diagnostics:
            reading.report.add(found)
        self._shared, self._broken = shared, own.failed
        return reading

    @property
    def prompted(self) -> bool:
        """Whether the suite says what a case without an input is asked."""
        return self._defaults.prompted or self._defaults.input is not None

    @property
    def graded(self) -> bool:
        """Whether the suite has assertions for its cases."""
        return not (is_empty(self._defaults.assert_) and is_empty(self._defaults.test_assert))

    def end(self, report: Report) -> None:
        """All cases were read: report what is wrong with the prompts that they ran with."""
        if self._matrix is not None:
            self._matrix.end(report)
        if self.clusters is not None:
            self.clusters.end(report)

    def read(self, node: Node, reading: Reading, *, alone: bool = True) -> tuple[Case, ...]:
        """What an entry stands for: one case, or one for each prompt and each combination of its list values.

        Nothing when anything is wrong with it, all of which is then reported.

        Args:
            node: what was written.
            reading: of the suite.
            alone: it brings an input of its own; a row of variables is asked what the suite's `input` says.
        """
        place = span_of(node.at)
        begin_record(place.file, place.line)
        self.seen = True
        if not isinstance(node, MapNode):
            reading.report.error("bad-case", node, f"a case must be a mapping, found {kind_of(node)}")
            self.lost = True
            return ()
        if self.witness is not None:
            self.witness(node)
        defaults = self._defaults
        if not expands(node, defaults.expand):
            return self._read(node, reading, alone=alone)
        found = [
            self._read(one, reading, end, alone=alone)
            for end, one in variants(node, defaults.vars, defaults.fixed, reading.report)
        ]
        return tuple(chain.from_iterable(found)) if all(found) else ()

    def _read(self, node: MapNode, reading: Reading, variant: str = "", *, alone: bool) -> tuple[Case, ...]:
        report = reading.report
        errors, unrendered = report.errors, report.unrendered
        translated = translate(node, CASE, report)
        items = translated.items
        if "target" not in items:
            self.untargeted = True
        authored = self._shape.decode(items, translated.map, reading, "a case", others=self._others)
        meant: frozenset[str] = frozenset()
        if authored is INVALID or report.errors > errors:
            meant = self._meant(node)
        if authored is INVALID:
            authored = self._shape.unread(items)
        if is_empty(items.get("id")) and "id" not in meant:
            report.error("missing-key", items.get("id") or node, "a case needs 'id'")
        cases = self._build(_Authored(authored, node, translated, meant, alone=alone, variant=variant), reading)
        if report.errors == errors and report.unrendered == unrendered:
            return cases
        identity = items.get("id")
        if isinstance(identity, Scalar) and not is_empty(identity):
            place = span_of(node.at)
            spans = self.unread.setdefault(identity.text, [])
            if not any(place[:2] == one[:2] for one in spans):  # a case of several prompts is read for each
                spans.append(place)
        else:
            self.lost = True
        return ()

    def _meant(self, node: MapNode) -> frozenset[str]:
        """The keys that are not really missing: they were misspelt, or are given by what is not built yet."""
        unknown = [key for key in node.items if key not in self._shape.rules and key not in CASE.known][:SHOWN_KEYS]
        near = (nearest(key, CASE.known) or MEANT.get(key) for key in unknown)
        meant = {CASE.older.get(key, key) for key in near if key}
        if "turns" in meant:
            meant |= {"input", "assert"}  # which a case with turns may lack
        return frozenset(meant)

    def _build(self, case: _Authored, reading: Reading) -> tuple[Case, ...]:
        authored, defaults = case.keys, self._defaults
        errors = reading.report.errors
        variables = self._variables(authored, reading)
        if variables is not defaults.vars:
            reading = reading.within(Scope(variables, self._env))
        if reading.report.errors > errors:
            reading = reading.rendering(False)  # what the placeholders mean is not known
        known = reading.report.errors == errors
        errors = reading.report.errors
        criteria = read_criteria(authored.criteria, reading)
        if reading.report.errors > errors:
            case = replace(case, meant=case.meant | {"criteria"})
        several = authored.turns is not None or authored.mode is not None
        turns = self._turns(case, reading) if several else ()
        entries = self._entries(case, criteria, turns, reading)
        entries = tuple(map(as_gate, entries)) if self.exam else entries
        messages = self._opening(case, reading) if several else self._input(case, reading)
        expected = authored.expected_output
        reference = () if expected is None or is_empty(expected) else read_messages(expected, "assistant", reading)
        target = self._book.inline(authored.target, reading) if authored.target is not None else None
        judge = self._book.inline(authored.judge, reading) if authored.judge is not None else None
        graded = (*entries, *assertions_of(turns)) if turns else entries
        alone = "in a case with turns, conversation_id or depends_on" if several or _is_linked(authored) else None
        for entry in graded:
            self.judging.look(entry, target=target, judge=judge, alone=alone)
        if known and reference is not None and not need_nothing(graded):
            facts_of = Facts(authored.id, variables, bool(reference), criteria is not None, turns or ())
            check_needs(entries, facts_of, reading.report)
        if target is not None or judge is not None:
            self._note(target, judge, graded)
        tags = read_tags(authored.tags, reading)
        depends_on = () if authored.depends_on is None else read_dependencies(authored.depends_on, reading)
        asked = self.asked if target is None or self.flagged else (target,)
        check_attachments(messages or (), asked, authored.input or case.node, reading.report)
        if messages is None or not graded:
            return ()
        self.zero.look(authored.threshold, entries, case.translated.map, reading.report)
        threshold = authored.threshold if authored.threshold is not None else defaults.threshold
        threshold = 0.0 if self.exam else threshold
        metadata = {**defaults.metadata, **authored.metadata} if authored.metadata or defaults.metadata else EMPTY
        preamble = self._preamble(case, reading) if authored.conversation_id is not None else 0
        facts: tuple[Any, ...]
        facts = (authored.id, messages, reference, criteria, variables, metadata, threshold, authored.repeat)
        if turns or authored.conversation_id is not None:
            facts = (*facts, authored.conversation_id, preamble, *turn_facts(turns or ()))
        try:
            digest = self._digest(facts, graded)
        except UnicodeEncodeError:
            message = (
                "this case contains half of a character (a lone surrogate), which cannot be written to a file or sent"
            )
            reading.report.error("not-unicode", case.node, message)
            return ()
        read = Case(
            id=authored.id or "",
            input=messages,
            assertions=entries,
            criteria=criteria,
            description=authored.description,
            expected_output=turns[-1].expected_output if turns else reference or (),
            vars=variables,
            metadata=metadata,
            tags=tags,
            threshold=threshold,
            repeat=authored.repeat,
            timeout_s=authored.timeout_s,
            target=target,
            judge=judge,
            variant=case.variant,
            sha256=digest,
            span=span_of(case.node.at),
            turns=turns or (),
            preamble=preamble,
            conversation_id=authored.conversation_id,
            depends_on=depends_on,
        )
        return self._with_prompts(self._clustered(read, case.node), authored, reading)

    def _with_prompts(self, read: Case, authored: AuthoredCase, reading: Reading) -> tuple[Case, ...]:
        """The case, or one for each prompt of the suite."""
        if self._matrix is None:
            return (read,)
        return self._matrix.cases(read, reading.of_suite(), self._around(authored, reading))

    def _clustered(self, read: Case, node: MapNode) -> Case:
        """The case with its cluster, where the suite says what makes one."""
        if self.clusters is None:
            return read
        cluster = self.clusters.value(read.id, node, read.metadata, read.vars)
        return replace(read, cluster_key=self.clusters.key, cluster=cluster)

    def _note(self, target: TargetSpec | None, judge: TargetSpec | None, graded: tuple[AssertionEntry, ...]) -> None:
        """What is to be remembered of the target and the judge that a case has for itself."""
        if target is not None and target.judge:
            self.judging.of_cases.setdefault(target.judge, target.name)
        if target is not None and target.missing:
            self.keyless.setdefault(target.name, target)
        if judge is not None and judge.missing and any(map(judges, graded)):
            self.judging.keyless.setdefault(judge.name, judge)

    def _around(self, authored: AuthoredCase, reading: Reading) -> Around:
        """What the suite says for all inputs, put around the messages of a prompt."""

        def around(messages: tuple[Message, ...], node: Node) -> tuple[Message, ...] | None:
            return messages if authored.skip_defaults else self._with_defaults(messages, node, reading)

        return around

    def _digest(self, facts: tuple[Any, ...], entries: tuple[AssertionEntry, ...]) -> str:
        """The hash of all that was authored for a case. Paths count from the repository's root, wherever that is."""
        written = _encode((facts, [fingerprint(entry, self.graders) for entry in entries]))
        return hashlib.sha256(without_home(written.replace(self._root, b""))).hexdigest()

    def _variables(self, authored: AuthoredCase, reading: Reading) -> JsonObject:
        defaults = self._defaults
        if authored.vars is None:
            return defaults.vars
        if isinstance(authored.vars, Scalar) and authored.vars.value is None:
            return defaults.vars
        if not isinstance(authored.vars, MapNode):
            dashes = isinstance(authored.vars, ListNode) and any(
                isinstance(one, MapNode) for one in authored.vars.items
            )
            hint = "write 'name: value' without the dashes" if dashes else "write 'name: value'"
            message = f"'vars' must be a mapping, found {kind_of(authored.vars)}"
            reading.report.error("bad-value", authored.vars, message, hint=hint)
            return defaults.vars
        own: dict[str, Json] = plain(authored.vars)
        return {**defaults.vars, **own, **defaults.fixed}

    def _input(self, case: _Authored, reading: Reading) -> tuple[Message, ...] | None:
        given = case.keys.input
        if self._defaults.prompted and (given is None or is_empty(given)):
            return ()
        if given is None and not case.alone and self._defaults.input is not None:
            return self._suites_input(self._defaults.input, case, reading)
        if given is None or is_empty(given):
            if "input" not in case.meant:
                reading.report.error("missing-input", given or case.node, "a case needs 'input'")
            return None
        own = self._asked(given, given, reading)
        if own is None:
            return None
        return own if case.keys.skip_defaults or self._matrix else self._with_defaults(own, given, reading)

    def _suites_input(self, node: Node, case: _Authored, reading: Reading) -> tuple[Message, ...] | None:
        """What a case is asked that brings nothing but variables."""
        own = self._asked(node, case.node, reading.of_suite())
        return None if own is None else self._with_files(own, node, reading)

    def _asked(self, node: Node, at: Node, reading: Reading) -> tuple[Message, ...] | None:
        own = read_messages(node, "user", reading)
        if own is not None and reading.renders and not any(message.content for message in own):
            reading.report.error("missing-input", at, "'input' is empty after its placeholders are filled in")
            return None
        return own

    def _turns(self, case: _Authored, reading: Reading) -> tuple[Turn, ...] | None:
        """The turns of a case that has some; None when something is wrong, which is reported."""
        authored, report = case.keys, reading.report
        told = report.errors + report.unrendered
        if self._matrix is not None:
            key = "turns" if authored.turns is not None else "mode"
            message = "a case with 'turns' defines its own questions, but the suite has 'prompts' as well"
            report.error("bad-turn", case.translated.map.keys[key], message, hint="keep one of them")
        if authored.mode is not None:
            report.older("mode: conversation", "turns", case.translated.map.keys["mode"])
        if authored.turns is None:
            at = case.translated.map.keys["mode"]
            if "turns" not in case.meant:
                report.error("missing-key", at, "'mode: conversation' needs 'turns', a list of questions")
            return None
        if not is_empty(authored.expected_output):
            at = case.translated.map.keys["expected_output"]
            message = (
                "a case with 'turns' has one answer per turn, so it is unclear which one 'expected_output' belongs to"
            )
            report.error("reference-beside-turns", at, message, hint="move it to the turn it belongs to")
        shared = None if authored.skip_defaults else self._defaults.input_files
        files = [] if shared is None else read_files(shared, reading.of_suite())
        turns = self._turn_reader.read(authored.turns, files, reading)
        return turns if report.errors + report.unrendered == told else None

    def _opening(self, case: _Authored, reading: Reading) -> tuple[Message, ...] | None:
        """What stands before the first turn: the suite's `input`, then the case's own."""
        given = case.keys.input
        own = () if given is None or is_empty(given) else read_messages(given, "user", reading)
        before = self._defaults.input if not case.keys.skip_defaults else None
        if before is None or own is None:
            return own
        shared = read_messages(before, "user", reading.of_suite())
        return None if shared is None else (*shared, *own)

    def _preamble(self, case: _Authored, reading: Reading) -> int:
        """How many messages the suite puts before this case's own."""
        if case.keys.skip_defaults or self._defaults.input is None:
            return 0
        return len(read_messages(self._defaults.input, "user", reading.of_suite()) or ())

    def _with_defaults(self, own: tuple[Message, ...], given: Node, reading: Reading) -> tuple[Message, ...] | None:
        own = self._with_files(own, given, reading)
        if self._defaults.input is None:
            return own
        before = read_messages(self._defaults.input, "user", reading.of_suite())
        return None if before is None else (*before, *own)

    def _with_files(self, own: tuple[Message, ...], given: Node, reading: Reading) -> tuple[Message, ...]:
        if self._defaults.input_files is not None and isinstance(given, Scalar):
            return with_files(own, read_files(self._defaults.input_files, reading.of_suite()))
        return own

    def _entries(
        self, case: _Authored, criteria: str | None, turns: tuple[Turn, ...] | None, reading: Reading
    ) -> tuple[AssertionEntry, ...]:
        """In the order of SPEC section 7.4: `rubrics`, the case's own, `default_test`'s, the suite's."""
        authored = case.keys
        report = reading.report
        told = report.errors + report.unrendered
        found: tuple[AssertionEntry, ...] = ()
        if authored.rubrics is not None:
            found = self._rubrics(authored.rubrics, reading)
        if authored.assert_ is not None:
            found += self._assertions.entries(authored.assert_, reading)
        if not authored.skip_defaults and not self._replaced(case):
            found += self._defaults_for(reading)
        sound = report.errors + report.unrendered == told and not case.meant & _CHECKS and not self._broken
        of_turns = assertions_of(turns) if turns else ()
        if not found and not (of_turns and not (criteria or "").strip()):
            return self._implied(case, criteria, reading) if sound and turns is not None else ()
        check_graded(found, of_turns, (case.node, case.translated), criteria, reading.report)
        return found

    def _rubrics(self, node: Node, reading: Reading) -> tuple[AssertionEntry, ...]:
        if is_empty(node):
            reading.report.error("missing-value", node, "'rubrics' is empty")
            return ()
        entry = self._assertions.judged(node, node, reading)
        return (entry,) if entry else ()

    def _replaced(self, case: _Authored) -> bool:
        """Seed 002: in its files, a case's own evaluators stand in place of the suite's."""
        written = case.translated.spelled.get("assert", "assert").rpartition(".")[2]
        return self._defaults.replaces and written == "evaluators"

    def _defaults_for(self, reading: Reading) -> tuple[AssertionEntry, ...]:
        if self._shared is not None:
            return self._shared
        nodes = [node for node in (self._defaults.test_assert, self._defaults.assert_) if node is not None]
        return self._lists(nodes, reading.of_suite())

    def _lists(self, nodes: Sequence[Node], reading: Reading) -> tuple[AssertionEntry, ...]:
        return tuple(entry for node in nodes for entry in self._assertions.entries(node, reading))

    def _implied(self, case: _Authored, criteria: str | None, reading: Reading) -> tuple[AssertionEntry, ...]:
        if criteria is not None and criteria.strip():
            entry = self._assertions.judged(None, case.keys.criteria or case.node, reading)
            return (entry,) if entry else ()
        message = "this case checks nothing: it has no assertion and no criteria"
        reading.report.error("checks-nothing", case.node, message, hint="add 'assert' or 'criteria'")
        return ()


def _is_linked(authored: AuthoredCase) -> bool:
    return authored.conversation_id is not None or authored.depends_on is not None


@dataclass(frozen=True, slots=True)
class _Authored:
    """A case as it is written.

    Attributes:
        keys: by their canonical names; only those that are handed on unread where another one is wrong.
        meant: keys whose absence is not to be reported.
        alone: it brings its own input.
        variant: the end of its id, where it is one of several that one entry stands for.
    """

    keys: AuthoredCase
    node: MapNode
    translated: Translated
    meant: frozenset[str]
    alone: bool
    variant: str = ""
