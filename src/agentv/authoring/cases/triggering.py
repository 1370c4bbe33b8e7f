"""`triggering:` of a suite: which queries should load a prompt by its description alone (SPEC sections 3 and 11)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from agentv.authoring.assertions.entries import AssertionReader
from agentv.authoring.assertions.judging import Judging
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AtLeastOne, Unread
from agentv.authoring.source.files import shown
from agentv.authoring.source.json_text import read_document
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, kind_of, node_of, span_of
from agentv.authoring.source.report import Report
from agentv.model.run.grade import TOLERANCE
from agentv.model.suite.exam import PromptMeta
from agentv.model.suite.suite import Case
from agentv.model.values.message import Message
from agentv.model.values.values import EMPTY, Json, JsonObject
from agentv.registry.fields import Declared, Doc, Fraction, Issue, Nonempty, Text, Verbatim

RUNS_OF_FILES = 3
"""Default number of runs of a query from a file in the format of agentskills.io."""

THRESHOLD = 0.5
"""Default minimum share of its runs in which a query must load the prompt to count as loading it."""


class AuthoredQueries(Declared, Struct, frozen=True):
    """`triggering:` of an exam, as a mapping."""

    should_trigger: Annotated[Unread, Doc("queries that should load the prompt")] = None
    should_not_trigger: Annotated[Unread, Doc("queries that should not load it")] = None
    queries: Annotated[Unread, Doc("a list of `query` and `should_trigger`, or the path of a file with one")] = None
    runs: Annotated[
        AtLeastOne | None, Verbatim(), Doc("how often each query is asked; 1, or 3 for queries from a file")
    ] = None
    threshold: Annotated[Fraction, Verbatim(), Doc("minimum share of runs in which the query loads the prompt")] = (
        THRESHOLD
    )
    catalogue: Annotated[bool | None, Verbatim(), Doc("show the descriptions of the other prompts; true")] = None

    def validate(self) -> Iterator[Issue]:
        """Yield an issue if every query would reach the threshold."""
        if self.threshold <= TOLERANCE:
            yield Issue(("threshold",), "with threshold 0, every query counts as loading the prompt")


class AuthoredTriggering(AuthoredQueries, frozen=True, kw_only=True):
    """`triggering:` of a suite."""

    name: Annotated[Text, Nonempty(), Verbatim(), Doc("name of the prompt")]
    description: Annotated[Text, Nonempty(), Verbatim(), Doc("what the judge decides by")]
    others: Annotated[JsonObject, Verbatim(), Doc("names and descriptions of the other prompts")] = field(default=EMPTY)


class AuthoredQuery(Declared, Struct, frozen=True):
    """One entry of a list of queries."""

    query: Annotated[Text, Nonempty(), Verbatim(), Doc("a query of a user")]
    should_trigger: Annotated[bool, Verbatim(), Doc("true: the query should load the prompt")]
    metadata: Annotated[JsonObject, Verbatim(), Doc("kept in the row")] = field(default=EMPTY)


class Query(Struct, frozen=True):
    """A query of a user.

    Attributes:
        loads: it should load the prompt.
        node: its position.
    """

    text: str
    loads: bool
    node: Node
    metadata: Mapping[str, Json] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The query on one line."""
        return " ".join(self.text.split())


Authored: TypeAlias = "tuple[AuthoredTriggering | None, list[Query]]"
"""The settings, or None if they are invalid, which is reported; and the valid queries."""


def read_queries(node: Node, reading: Reading) -> Authored:
    """Read the settings and the queries of `triggering:`. Errors are reported."""
    if not isinstance(node, MapNode) or not node.items:
        reading.report.unfit(node, "'triggering' must be a mapping")
        return None, []
    settings = shape_of(AuthoredTriggering).decode(node.items, node, reading, "'triggering'")
    given = shape_of(AuthoredQueries).unread(node.items) if settings is INVALID else settings
    queries = [*_texts(given.should_trigger, True, reading), *_texts(given.should_not_trigger, False, reading)]
    more, runs = given.queries, 1
    if isinstance(more, Scalar) and isinstance(more.value, str) and more.value.strip():
        queries += _in_file(more, reading)
        runs = RUNS_OF_FILES
    elif isinstance(more, ListNode):
        queries += _listed(more, reading, of_file=False)
    elif more is not None:
        reading.report.unfit(more, "'queries' must be a list, or the path of a file")
    if not reading.report.failed and not queries:
        hint = "write 'should_trigger', 'should_not_trigger' or 'queries'"
        reading.report.error("missing-value", node, "'triggering' contains no queries", hint=hint)
    first: dict[str, Query] = {}
    for query in queries:
        other = first.setdefault(query.name, query)
        if other is not query:
            span = span_of(other.node.at)
            end = "" if other.loads is query.loads else ", and expects the opposite"
            message = f"this query already appears at {shown(span.file)}:{span.line}{end}"
            reading.report.error("duplicate-id", query.node, message)
    return None if settings is INVALID else replace(settings, runs=settings.runs or runs), queries


def _in_file(node: Scalar, reading: Reading) -> list[Query]:
    """The queries of another file, which contains a list of them."""
    path = reading.find(node, "file")
    text = None if path is None else reading.text_of(path, node)
    if path is None or text is None:
        return []
    root, valid = read_document(path, text, reading.report)
    if isinstance(root, ListNode) and root.items:
        return list(_listed(root, reading, of_file=True))
    if valid:
        found = "nothing" if root is None else kind_of(root)
        message = f"{shown(path)} must be a list of 'query' and 'should_trigger', found {found}"
        reading.report.error("bad-value", root or node, message)
    return []


def _texts(node: Node | None, loads: bool, reading: Reading) -> Iterator[Query]:
    """The queries of `should_trigger` or `should_not_trigger`."""
    key = "should_trigger" if loads else "should_not_trigger"
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return
    if not isinstance(node, ListNode):
        reading.report.unfit(node, f"'{key}' must be a list of queries", hint="start each query with '- '")
        return
    for item in node.items:
        if not isinstance(item, Scalar):
            hint = "quote a query that contains ': '" if isinstance(item, MapNode) else None
            reading.report.unfit(item, "a query must be text", hint=hint)
        elif is_empty(item):
            reading.report.error("missing-value", item, "this query is empty")
        else:
            yield Query(item.value if isinstance(item.value, str) else item.text, loads, item)


def _listed(node: ListNode, reading: Reading, *, of_file: bool) -> Iterator[Query]:
    """The queries of a list of `query` and `should_trigger`."""
    for item in of_agentskills(node).items if of_file else node.items:
        if not isinstance(item, MapNode):
            reading.report.unfit(item, "an entry must have 'query' and 'should_trigger'")
            continue
        read = shape_of(AuthoredQuery).decode(item.items, item, reading, "a query")
        if read is not INVALID:
            yield Query(read.query, read.should_trigger, item.items["query"], read.metadata)


def of_agentskills(node: ListNode) -> ListNode:
    """A list in the format of agentskills.io, with unknown keys of each query moved into its metadata."""
    return ListNode([_with_metadata(item) for item in node.items], node.at)


def prompt_keys(meta: PromptMeta, others: Mapping[str, str], at: Node, hint: str, report: Report) -> dict[str, Json]:
    """The keys of `triggering:` for a prompt and the others of its library. A missing description is reported.

    Args:
        meta: metadata of the prompt.
        others: id → description of the other prompts.
        at: position at which a missing description is reported.
        hint: where to write it.
        report: receives the error.
    """
    if not (meta.description or "").strip():
        message = f"'{meta.id}' has no description to decide by whether it is loaded"
        report.error("missing-value", at, message, hint=f"write 'description: …' into {hint}")
    shown = {name: text for name, text in others.items() if text}
    return {"name": meta.id, "description": meta.description or meta.id, "others": dict(shown)}


def _with_metadata(item: Node) -> Node:
    own = ("query", "should_trigger")
    if not isinstance(item, MapNode) or any(key not in item.items for key in own) or len(item.items) == len(own):
        return item
    metadata = item.items.get("metadata")
    written = metadata if isinstance(metadata, MapNode) else MapNode({}, {}, item.at)
    others = {key: one for key, one in item.items.items() if key not in own and one is not written}
    more = MapNode({**written.items, **others}, {**written.keys, **item.keys}, item.at)
    items: dict[str, Node] = {**{key: item.items[key] for key in own}, "metadata": more}
    return MapNode(items, {**item.keys, "metadata": item.at}, item.at)


TAG = "triggering"
"""Tag of every case that is generated here, by which they can be selected or excluded."""


_PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")


def trigger_cases(node: Node, assertions: AssertionReader, judging: Judging, reading: Reading) -> tuple[Case, ...]:
    """The cases of `triggering:`, in order; () if anything is invalid, which is reported.

    Args:
        node: the authored value.
        assertions: reads the assertion of each query.
        judging: records that a judge is needed.
        reading: the suite's `Reading`.
    """
    reading = reading.part().rendering(False)
    settings, queries = read_queries(node, reading)
    if settings is None or reading.report.failed:
        return ()
    made = (_case_of(query, settings, assertions, judging, reading) for query in queries)
    return tuple(case for case in made if case is not None)


def _case_of(
    query: Query, settings: AuthoredTriggering, assertions: AssertionReader, judging: Judging, reading: Reading
) -> Case | None:
    """The case of a query; None if it contains a lone surrogate, which is reported."""
    span, mark = span_of(query.node.at), pass_mark(settings.threshold, query.loads)
    others = {} if settings.catalogue is False else {key: str(settings.others[key]) for key in settings.others}
    question = question_of(settings.name, settings.description, dict(sorted(others.items())), query.text)
    entry: dict[str, Json] = {"type": TAG, "value": query.loads, "required": mark}
    entries = assertions.entries(node_of([entry], span), reading).value
    metadata: dict[str, Json] = {**query.metadata, "query": query.text, "should_trigger": query.loads}
    facts = [query.name, question, query.loads, mark, metadata]
    try:
        written = json.dumps([*facts, settings.runs], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        message = "this query or its prompt contains half of a character (a lone surrogate), which cannot be sent"
        reading.report.error("not-unicode", query.node, message)
        return None
    judging.need_judge(span)
    return Case(
        id=f"trigger: {query.name}",
        input=(Message("user", question),),
        assertions=entries,
        description=f"'{settings.name}' should {'' if query.loads else 'not '}be loaded",
        metadata=metadata,
        tags=(TAG,),
        threshold=0.0,  # the gate of its one assertion decides
        repeat=settings.runs,
        sha256=hashlib.sha256(written).hexdigest(),
        span=span,
        asks_judge=True,
    )


def pass_mark(threshold: float, loads: bool) -> float:
    """The share of right answers that a query needs to pass.

    A query that should load the prompt passes if YES has a share of `threshold` or more; one that should not passes
    if everything except NO stays below it, so that NO has a share *above* 1 − threshold. This is
    exact for any realistic number of runs: shares with different counts differ by far more than the
    tolerance with which thresholds are compared.
    """
    return threshold if loads else min(1.0, 1.0 - threshold + 2 * TOLERANCE)


def question_of(name: str, description: str, others: Mapping[str, str], query: str) -> str:
    """The question to the judge. It is deterministic, so that a run can be resumed.

    Args:
        name: the prompt's id.
        description: the prompt's description.
        others: id → description of the other prompts; if empty, they are not mentioned.
        query: a user's query.
    """
    facts = json.dumps([name, description, dict(others), query])
    token = hashlib.sha256(facts.encode()).hexdigest()[:16]
    catalogue = "\n\n".join(_entry(one, text) for one, text in others.items())
    shown = f"\nThe other prompts:\n\n{_fenced('others', token, catalogue)}\n" if others else ""
    values = {
        "token": token,
        "prompt": _fenced("prompt", token, _entry(name, description)),
        "others": shown,
        "query": _fenced("query", token, query.strip()),
    }
    # in one pass, so that placeholders inside the values stay
    return _PLACEHOLDER.sub(lambda found: values[found[1]], _template())


def _entry(name: str, description: str) -> str:
    return f"name: {' '.join(name.split())}\ndescription: {description.strip()}"


def _fenced(what: str, token: str, text: str) -> str:
    return f"<{what}-{token}>\n{text}\n</{what}-{token}>"


@cache
def _template() -> str:
    return Path(__file__).with_name("triggering.md").read_text(encoding="utf-8").strip()
