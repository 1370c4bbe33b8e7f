"""Reads the records of each format as samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from agentv.authoring.convert.records import Findings, records
from agentv.authoring.source.json_text import parse_json
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, node_of, plain, span_of
from agentv.authoring.source.report import Report
from agentv.extensions.datasets.samples import (
    DEEPEVAL,
    INSPECT,
    OPENAI_EVALS,
    TAU_BENCH,
    DatasetSample,
    input_of,
    messages_of,
    text_of,
)
from agentv.extensions.datasets.tau_bench import head_of_tasks, read_task, tasks

_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")
_ATTACHMENT = re.compile(r"\[DEEPEVAL:(?:IMAGE|PDF):")
_RETRIEVED = re.compile(r"deepeval_source=.*?,deepeval_context=(?P<text>.*)", re.DOTALL)
_SEPARATOR = "|"
"""Separator with which deepeval joins a list of texts in a CSV cell."""


def _golden(record: MapNode, findings: Findings, _server: str) -> DatasetSample | None:
    """Read a golden of deepeval (https://deepeval.com/docs/evaluation-datasets)."""
    items = {_CAMEL.sub(lambda letter: f"_{letter[1].lower()}", key): node for key, node in record.items.items()}
    if "context" in items:
        items["context"] = _listed(items["context"])
    if "scenario" in items and "input" not in items:
        return _conversational_golden(record, items, findings)
    question = items.pop("input", None)
    if isinstance(question, ListNode):
        findings.unfit(question, "'input' of a golden must be text")
        return None
    found = input_of(question, record, findings)
    if found is None:
        return None
    if _ATTACHMENT.search(text_of(found) or ""):
        findings.error("no-equivalent", record, "pictures and PDFs of deepeval ([DEEPEVAL:…]) are not converted")
        return None
    expected = text_of(items.pop("expected_output", None))
    identity, name = text_of(items.pop("id", None)), text_of(items.pop("name", None))
    listed = items.pop("retrieval_context", None)
    cell = _listed(listed) if listed is not None else None
    values = [text_of(item) or "" for item in cell.items] if isinstance(cell, ListNode) else []
    # deepeval writes the source of a text before it
    bare = (match["text"] if (match := _RETRIEVED.fullmatch(one)) else one for one in values)
    retrieved = [one for one in bare if one.strip()]
    return DatasetSample(
        input=found,
        references=(expected,) if expected is not None else (),
        at=record.at,
        id=identity,
        name=name,
        description=text_of(items.pop("comments", None)) or (name if identity else None),
        variables={"context": node_of(retrieved, record.at)} if retrieved else {},
        metadata=_merged(items, ("additional_metadata", "custom_column_key_values")),
    )


def _conversational_golden(record: MapNode, items: dict[str, Node], findings: Findings) -> DatasetSample | None:
    """Read a golden with a simulated user (https://deepeval.com/docs/conversation-simulator)."""
    goal, wanted = text_of(items.pop("scenario")), text_of(items.pop("expected_outcome", None))
    persona, described = _decoded(items.pop("persona", None), "{"), text_of(items.pop("user_description", None))
    turns, expected = _decoded(items.pop("turns", None), "["), _decoded(items.pop("expectations", None), "{")
    conditions = _conditions(expected)
    if conditions is None:
        message = "'expectations' of a golden must be a mapping of 'must' and 'must_not'"
        findings.error("bad-value", expected or record, message)
        return None
    name, comments = text_of(items.pop("name", None)), text_of(items.pop("comments", None))
    description = described
    if isinstance(persona, MapNode):  # the form in which deepeval describes it to its model
        details = persona.get("metadata")
        parts = [text_of(persona.get("name")), text_of(persona.get("characteristics"))]
        parts += [f"{key}: {value}" for key, value in plain(details).items()] if isinstance(details, MapNode) else []
        description = "\n".join(filter(None, parts))
    checked = [wanted, *conditions]
    if any(_ATTACHMENT.search(one or "") for one in (goal, description, *checked)):
        findings.error("no-equivalent", record, "pictures and PDFs of deepeval ([DEEPEVAL:…]) are not converted")
        return None
    if goal is None:
        findings.error("missing-input", record, "this golden has an empty 'scenario'")
        return None
    opening = None if turns is None or is_empty(turns) else messages_of(turns, findings)
    user = {"goal": goal, **({"persona": description} if description else {}), "output": "transcript"}
    rubric = {"type": "llm-rubric", "name": "expected outcome", "value": [one for one in checked if one]}
    return DatasetSample(
        input=opening,
        references=(),
        at=record.at,
        name=name,
        description=comments,
        user=node_of(user, span_of(record.at)),
        checks=(rubric,) if rubric["value"] else (),
        metadata=_merged(items, ("additional_metadata", "custom_column_key_values")),
    )


def _conditions(node: Node | None) -> list[str] | None:
    """The conditions that a conversation must and must not meet, as sentences; None if they are malformed."""
    given = {} if node is None or is_empty(node) else plain(node)
    if not isinstance(given, dict) or given.keys() - {"must", "must_not"}:
        return None
    must, must_not = given.get("must", []), given.get("must_not", [])
    if not all(isinstance(one, list) and all(isinstance(text, str) for text in one) for one in (must, must_not)):
        return None
    return [*must, *(f"It is not so that: {one}" for one in must_not)]


def _listed(node: Node) -> Node:
    """The list of texts that deepeval joined into one; any other node unchanged."""
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value:
        return node_of(node.value.split(_SEPARATOR), span_of(node.at))
    return node


def _openai_sample(record: MapNode, findings: Findings, _server: str) -> DatasetSample | None:
    """Read a sample of OpenAI evals (https://github.com/openai/evals, docs/build-eval.md)."""
    items = dict(record.items)
    found = input_of(items.pop("input", None), record, findings)
    references = _references(items.pop("ideal", None), "ideal", findings)
    identity = text_of(items.pop("id", None))
    if found is None or references is None:
        return None
    return DatasetSample(found, references, record.at, identity, metadata=_merged(items, ("metadata",)))


def _inspect_sample(record: MapNode, findings: Findings, _server: str) -> DatasetSample | None:
    """Read a sample of Inspect (https://inspect.aisi.org.uk/datasets.html)."""
    items = dict(record.items)
    found = input_of(_decoded(items.pop("input", None), "[{"), record, findings)
    references = _references(_decoded(items.pop("target", None), "["), "target", findings)
    choices = _choices(items.pop("choices", None))
    identity = text_of(items.pop("id", None))
    for key in ("files", "setup", "sandbox"):
        node = items.pop(key, None)
        if node is not None and not is_empty(node):
            findings.error("not-yet", node, f"'{key}' of a sample needs a sandbox, which is not supported yet")
            return None
    if found is None or references is None:
        return None
    metadata = _merged(items, ("metadata",))
    return DatasetSample(found, references, record.at, identity, metadata=metadata, choices=choices)


def _references(node: Node | None, key: str, findings: Findings) -> tuple[str, ...] | None:
    """The right answers, or None if they are malformed, which is reported."""
    if node is None or is_empty(node):
        return ()
    values = [text_of(one) for one in (node.items if isinstance(node, ListNode) else [node])]
    if None in values:
        findings.error("bad-value", node, f"'{key}' must be text or a list of texts that are not empty")
        return None
    return tuple(dict.fromkeys(one for one in values if one is not None))


def _choices(node: Node | None) -> tuple[str, ...]:
    """Answers to choose from. Text is split at commas, or else at white space, as in Inspect."""
    if isinstance(node, ListNode):
        return tuple(text_of(item) or str(plain(item)) for item in node.items)
    text = text_of(node) or ""
    return tuple(part.strip() for part in (text.split(",") if "," in text else text.split()))


def _decoded(node: Node | None, start: str) -> Node | None:
    """The list or mapping in JSON text with this start, as in CSV cells, or else the node itself."""
    text = text_of(node)
    if node is None or text is None or not re.sub(r"\s", "", text[:20]).startswith(start):
        return node
    found = parse_json(text, span_of(node.at), Report())
    return node if found is None or isinstance(found, Scalar) else found


def _merged(items: Mapping[str, Node], inner: tuple[str, ...]) -> dict[str, Node]:
    """Metadata: the remaining keys, with the mappings under `inner` flattened unless their keys clash."""
    made = {key: node for key, node in items.items() if not is_empty(node)}
    for key in inner:
        values = _decoded(made.get(key), "{")
        if isinstance(values, MapNode) and not values.items.keys() & (made.keys() - {key}):
            del made[key]
            made |= values.items
        elif values is not None:
            made[key] = values
    return made


class Format(Struct, frozen=True):
    """The format of a tool's samples.

    Attributes:
        read: reads a record, given the name of the server whose tools it calls; returns None if it is invalid.
        noun: prefix of the ids of samples without an id.
        records: reads the records of a file.
        is_self_graded: whether samples say how they are graded, given the first record.
        head: returns keys of the suite, given the paths of the file, of the module with the tools, and of the suite.
    """

    read: Callable[[MapNode, Findings, str], DatasetSample | None]
    noun: str = "sample"
    records: Callable[[str, Findings], Iterator[MapNode]] = records
    is_self_graded: Callable[[MapNode], bool] = lambda _: False
    head: Callable[[Path, Path | None, Path], Mapping[str, Node]] = lambda *_: {}


FORMATS: Mapping[str, Format] = {
    DEEPEVAL: Format(_golden, "golden", is_self_graded=lambda first: "scenario" in first.items),
    OPENAI_EVALS: Format(_openai_sample),
    INSPECT: Format(_inspect_sample),
    TAU_BENCH: Format(read_task, "task", tasks, lambda _: True, head_of_tasks),
}
