"""`triggering:` of an exam: which queries should load a prompt by its description alone (SPEC section 11).

Each query becomes a case that asks the judge in force, YES or NO. The description, the query and what the other prompts
say of themselves are put into the question as text, behind tags that none of them can know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeAlias

from agentv.model.assertion import AssertionEntry
from agentv.model.exam import PromptMeta
from agentv.model.grade import TOLERANCE
from agentv.model.message import Message
from agentv.model.suite import Case
from agentv.model.values import Json
from agentv.registry.fields import Declared, Doc, Fault, Fraction, Nonempty, Text, Verbatim
from agentv.spec.decode import INVALID, shape_of
from agentv.spec.files import shown
from agentv.spec.head import Head
from agentv.spec.json_text import read_json
from agentv.spec.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, node_of, plain, span_of
from agentv.spec.reading import Reading
from agentv.spec.schema import AtLeastOne, Unread
from agentv.spec.trigger_question import question_of
from agentv.spec.yaml import read_yaml

TAG = "triggering"
"""Of every case that is made here, to choose them by or leave them out."""

RUNS_OF_FILES = 3
"""How often a query of a file in the form of agentskills.io is asked where nothing is said."""

THRESHOLD = 0.5
"""The share of its runs in which a query has to load the prompt, so that it counts as loading it."""

_FORMS = "lists 'should_trigger' and 'should_not_trigger', a list of 'query' and 'should_trigger', or a file of those"


@dataclass(frozen=True, slots=True)
class AuthoredTriggering(Declared):
    """`triggering:` of an exam, as a mapping."""

    should_trigger: Annotated[Unread, Doc("queries that should load the prompt")] = None
    should_not_trigger: Annotated[Unread, Doc("queries that should not")] = None
    queries: Annotated[Unread, Doc("a list of `query` and `should_trigger`, or the file that holds it")] = None
    runs: Annotated[AtLeastOne | None, Verbatim(), Doc("how often each query is asked; 1, of a file 3")] = None
    threshold: Annotated[
        Fraction, Verbatim(), Doc("share of its runs from which on a query counts as loading the prompt")
    ] = THRESHOLD
    catalogue: Annotated[bool | None, Verbatim(), Doc("whether the other prompts' descriptions are shown; true")] = None

    def faults(self) -> Iterator[Fault]:
        """A threshold that every query reaches."""
        if self.threshold <= TOLERANCE:
            yield Fault(("threshold",), "at a threshold of 0 every query counts as one that loads the prompt")


@dataclass(frozen=True, slots=True)
class AuthoredQuery(Declared):
    """One entry of a list of queries."""

    query: Annotated[Text, Nonempty(), Verbatim(), Doc("what a user asks")]
    should_trigger: Annotated[bool, Verbatim(), Doc("whether the prompt should be loaded for it")]


@dataclass(frozen=True, slots=True)
class _Query:
    """A query, where it stands, and what else its file says of it."""

    text: str
    loads: bool
    node: Node
    extra: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return " ".join(self.text.split())


_Authored: TypeAlias = "tuple[AuthoredTriggering | None, list[_Query]]"
"""How is asked, None where that is wrong, which is reported; and the queries that are right."""


def trigger_cases(
    node: Node, prompt: PromptMeta, others: Mapping[str, str], head: Head, reading: Reading
) -> tuple[Case, ...]:
    """The cases of `triggering:`, in its order; none where anything is wrong, all of which is then reported.

    Args:
        node: what was written: a mapping, a list of queries, or the path of a file.
        prompt: whose description is asked about.
        others: id → description of the other prompts of the library.
        head: of the suite; learns that a judge is needed.
        reading: of the suite.
    """
    return cases_of(node, prompt, others, head, reading.rendering(False))


def cases_of(
    node: Node, prompt: PromptMeta, others: Mapping[str, str], head: Head, reading: Reading, *, runs: int = 1
) -> tuple[Case, ...]:
    """The same with another number of `runs` where the file says none."""
    errors = reading.report.errors
    head.cases.seen = True
    settings, queries = _read(node, reading, runs)
    if reading.report.errors == errors and not queries:
        reading.report.error("missing-value", node, f"'triggering' holds no query; it is {_FORMS}")
    _check_twice(queries, reading)
    if is_empty_text(prompt.description):
        file = shown(prompt.path) if prompt.path else "a meta.yaml beside the prompt"
        message = f"whether '{prompt.id}' is loaded is decided by its description, and it has none"
        reading.report.error("missing-value", node, message, hint=f"write 'description: …' into {file}")
    if settings is None or reading.report.errors > errors:
        return ()
    made = _Maker(prompt, dict(sorted(others.items())), settings, head, reading)
    return tuple(case for query in queries if (case := made.case(query)) is not None)


def is_empty_text(text: str | None) -> bool:
    """Whether a text says nothing."""
    return text is None or not text.strip()


def _read(node: Node, reading: Reading, runs: int) -> _Authored:
    """What was written, in any of its forms."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        return _in_file(node, reading)
    if isinstance(node, ListNode):
        return AuthoredTriggering(runs=runs), list(_listed(node, reading))
    if not isinstance(node, MapNode) or not node.items:
        reading.report.error("bad-value", node, f"'triggering' is {_FORMS}; found {kind_of(node)}")
        return None, []
    settings = shape_of(AuthoredTriggering).decode(node.items, node, reading, "'triggering'")
    given = shape_of(AuthoredTriggering).unread(node.items) if settings is INVALID else settings
    queries = [*_texts(given.should_trigger, True, reading), *_texts(given.should_not_trigger, False, reading)]
    more = given.queries
    if isinstance(more, Scalar) and isinstance(more.value, str) and more.value.strip():
        queries += _in_file(more, reading)[1]
        runs = RUNS_OF_FILES
    elif isinstance(more, ListNode):
        queries += _listed(more, reading)
    elif more is not None:
        message = f"'queries' must be a list, or the path of a file, found {kind_of(more)}"
        reading.report.error("bad-value", more, message)
    return None if settings is INVALID else replace(settings, runs=settings.runs or runs), queries


def _in_file(node: Scalar, reading: Reading) -> _Authored:
    """The queries of another file: a bare array, as agentskills.io has it, or what may stand under `triggering`."""
    path = reading.find(node, "file")
    text = None if path is None else reading.text_of(path, node)
    if path is None or text is None:
        return None, []
    errors = reading.report.errors
    is_json = path.endswith(".json")
    root = read_json(path, text, reading.report) if is_json else read_yaml(path, text.encode(), reading.report)
    if root is None or isinstance(root, Scalar):
        if reading.report.errors == errors:
            reading.report.error("missing-value", node, f"'{shown(path)}' holds no query")
        return None, []
    return _read(root, reading, RUNS_OF_FILES)


def _texts(node: Node | None, loads: bool, reading: Reading) -> Iterator[_Query]:
    """The queries of `should_trigger` or `should_not_trigger`."""
    key = "should_trigger" if loads else "should_not_trigger"
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return
    if not isinstance(node, ListNode):
        message = f"'{key}' must be a list of queries, found {kind_of(node)}"
        reading.report.error("bad-value", node, message, hint="each query begins with '- '")
        return
    for item in node.items:
        if not isinstance(item, Scalar):
            hint = "quote a query that holds ': '" if isinstance(item, MapNode) else None
            reading.report.error("bad-value", item, f"a query is text, found {kind_of(item)}", hint=hint)
        elif is_empty(item):
            reading.report.error("missing-value", item, "this query is empty")
        else:
            yield _Query(item.value if isinstance(item.value, str) else item.text, loads, item)


def _listed(node: ListNode, reading: Reading) -> Iterator[_Query]:
    """The queries of a list of `query` and `should_trigger`.

    Files in the form of agentskills.io say more of a query, such as why it is hard: that is kept as metadata.
    """
    shape = shape_of(AuthoredQuery)
    for item in node.items:
        if not isinstance(item, MapNode):
            message = f"an entry has 'query' and 'should_trigger', found {kind_of(item)}"
            reading.report.error("bad-value", item, message)
            continue
        extra = {key: plain(one) for key, one in item.items.items() if key not in shape.rules}
        whole = item.items.keys() >= shape.rules.keys()
        pairs = {key: one for key, one in item.items.items() if not whole or key in shape.rules}
        read = shape.decode(pairs, item, reading, "a query")
        if read is not INVALID:
            yield _Query(read.query, read.should_trigger, item.items["query"], extra)


def _check_twice(queries: Sequence[_Query], reading: Reading) -> None:
    first: dict[str, _Query] = {}
    for query in queries:
        other = first.setdefault(query.name, query)
        if other is not query:
            span = span_of(other.node.at)
            end = "" if other.loads is query.loads else ", and expects the opposite"
            message = f"this query stands at {shown(span.file)}:{span.line} already{end}"
            reading.report.error("duplicate-id", query.node, message)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the cases of one prompt."""

    prompt: PromptMeta
    others: Mapping[str, str]
    settings: AuthoredTriggering
    head: Head
    reading: Reading

    def case(self, query: _Query) -> Case | None:
        """The case of a query; None where it cannot be written down, which is reported."""
        span = span_of(query.node.at)
        name = self.prompt.id
        others = {} if self.settings.catalogue is False else self.others
        question = question_of(name, self.prompt.description or "", others, query.text)
        entries = self._entries(query)
        metadata: dict[str, Json] = {**query.extra, "query": query.text, "should_trigger": query.loads}
        facts = [query.name, question, query.loads, mark_of(self.settings.threshold, query.loads), metadata]
        try:
            written = json.dumps([*facts, self.settings.runs], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = "this query or its prompt holds half of a character (a lone surrogate), which no request can hold"
            self.reading.report.error("not-unicode", query.node, message)
            return None
        self.head.cases.judging.ask(span)
        return Case(
            id=f"trigger: {query.name}",
            input=(Message("user", question),),
            assertions=entries,
            description=f"'{name}' should {'' if query.loads else 'not '}be loaded",
            metadata=metadata,
            tags=(TAG,),
            threshold=0.0,  # the gate of its one assertion decides
            repeat=self.settings.runs,
            sha256=hashlib.sha256(written).hexdigest(),
            span=span,
            asks_judge=True,
        )

    def _entries(self, query: _Query) -> tuple[AssertionEntry, ...]:
        entry: dict[str, Json] = {
            "type": TAG,
            "value": query.loads,
            "required": mark_of(self.settings.threshold, query.loads),
        }
        return self.head.assertions.entries(node_of([entry], span_of(query.node.at)), self.reading)


def mark_of(threshold: float, loads: bool) -> float:
    """The share of right answers that a query needs.

    One that should load the prompt passes where YES is said at a rate of `threshold` or more; one that should not
    where the rate of all else than NO stays below it, so that NO is said at a rate *above* 1 − threshold. That is
    exact for any number of runs that somebody can pay for: rates of different counts differ by far more than the
    tolerance with which marks are compared.
    """
    return threshold if loads else min(1.0, 1.0 - threshold + 2 * TOLERANCE)
