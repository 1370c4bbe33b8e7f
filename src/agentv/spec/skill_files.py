"""The tests of a skill as Anthropic's skill-creator and agentskills.io write them, as exams.

`eval_queries.json` is a bare array of `{"query", "should_trigger"}`; `evals.json` is `{"skill_name", "evals": [{"id",
"prompt", "expected_output", "files", "expectations"}]}`, where newer files say `assertions`. Both belong to the closest
`SKILL.md` above them. All of it is data: no placeholder in it is filled in.

Sources: https://agentskills.io/skill-creation/optimizing-descriptions, …/evaluating-skills; the page
`references/schemas.md` of the skill-creator in https://github.com/anthropics/skills.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from agentv.model.exam import DESCRIPTION, Exam
from agentv.model.message import FileBlock, ImageBlock
from agentv.model.suite import Case, Suite
from agentv.registry.fields import AsWritten, Declared, Doc, Nonempty, Text, Verbatim
from agentv.spec.assertions import JUDGED
from agentv.spec.decode import INVALID, shape_of
from agentv.spec.head import Head
from agentv.spec.lowered import Lowered, no_queries
from agentv.spec.nearest import nearest
from agentv.spec.nodes import ListNode, MapNode, Node, Place, Scalar, is_empty, kind_of, node_of, plain
from agentv.spec.reading import Reading
from agentv.spec.schema import Unread
from agentv.spec.skills import SKILL, Skill, skill_above, skills_beside
from agentv.spec.spellings import SUITE
from agentv.spec.triggering import RUNS_OF_FILES, cases_of

_QUERY = frozenset({"query", "should_trigger"})
_TESTS = frozenset(SUITE.spelled("tests"))


@dataclass(frozen=True, slots=True)
class AuthoredEval(Declared):
    """One entry of `evals`. Further keys are kept as metadata."""

    prompt: Annotated[Text, Nonempty(), Verbatim(), Doc("what the user asks")]
    id: Annotated[Text | None, Nonempty(), Verbatim(), Doc("unique in the file; its place where missing")] = None
    name: Annotated[Text | None, Verbatim(), Doc("what people call it")] = None
    expected_output: Annotated[Unread, Doc("what a good answer is")] = None
    files: Annotated[tuple[Annotated[str, AsWritten()], ...], Verbatim(), Doc("from the skill's directory")] = ()
    expectations: Annotated[Unread, Doc("sentences that must hold of the answer")] = None
    assertions: Annotated[Unread, Doc("the same; an entry may be an assertion of agentv's too")] = None


def is_skill_file(root: Node) -> bool:
    """Whether a JSON file holds queries or evals in the form of others."""
    if isinstance(root, ListNode):
        return any(isinstance(item, MapNode) and not _QUERY.isdisjoint(item.items) for item in root.items)
    return isinstance(root, MapNode) and "evals" in root.items and _TESTS.isdisjoint(root.items)


def read_skill_file(root: Node, path: str, reading: Reading) -> Lowered | None:
    """The exam that the file is; None where its skill is not found, which is reported."""
    skill = skill_above(str(Path(path).parent), root, reading)
    if skill is None:
        return None
    own = replace(reading.rendering(False), places=replace(reading.places, suite=skill.directory))

    def queries(head: Head, of_suite: Reading) -> tuple[Case, ...]:
        others = {one.meta.id: one.meta.description or "" for one in skills_beside(skill, of_suite)}
        known = {name: text for name, text in others.items() if text}
        return cases_of(root, skill.meta, known, head, of_suite.rendering(False), runs=RUNS_OF_FILES)

    def exam(suite: Suite) -> Exam:
        return _exam(suite, skill, path, own)

    if isinstance(root, MapNode):
        return Lowered(_suite_of(root, skill, own), own, no_queries, exam)
    pairs = {"name": node_of(skill.meta.id, root.at), "tests": ListNode([], root.at)}
    return Lowered(_mapping(pairs, root.at), own, queries, exam)


def _suite_of(root: MapNode, skill: Skill, reading: Reading) -> MapNode:
    """The eval file that `evals.json` stands for."""
    _check_name(root, skill, reading)
    evals = root.items["evals"]
    if not isinstance(evals, ListNode):
        reading.report.error("bad-value", evals, f"'evals' must be a list, found {kind_of(evals)}")
        evals = ListNode([], evals.at)
    entries = [_case_of(item, place, reading) for place, item in enumerate(evals.items, 1)]
    extra = {key: plain(node) for key, node in root.items.items() if key not in {"evals", "skill_name"}}
    pairs: dict[str, Node] = {
        "name": node_of(skill.meta.id, root.at),
        "metadata": node_of(extra, root.at),
        "tests": ListNode([one for one in entries if one is not None], evals.at),
    }
    if skill.instructions:
        pairs["input"] = node_of([{"role": "system", "content": skill.instructions}], skill.at)
    return _mapping(pairs, root.at)


def _check_name(root: MapNode, skill: Skill, reading: Reading) -> None:
    said = root.get("skill_name")
    if said is not None and (not isinstance(said, Scalar) or said.text != skill.meta.id):
        what = f"'{said.text}'" if isinstance(said, Scalar) else kind_of(said)
        message = f"these evals are of {what}, and the closest {SKILL} is of '{skill.meta.id}'"
        reading.report.warning("bad-value", said, message)


def _case_of(item: Node, place: int, reading: Reading) -> MapNode | None:
    """The case that an entry of `evals` stands for; None where it is wrong, which is reported."""
    if not isinstance(item, MapNode):
        reading.report.error("bad-case", item, f"an entry of 'evals' must be a mapping, found {kind_of(item)}")
        return None
    rules = shape_of(AuthoredEval).rules
    extra = {key: node for key, node in item.items.items() if key not in rules and not nearest(key, rules)}
    given = {key: node for key, node in item.items.items() if key not in extra}
    read = shape_of(AuthoredEval).decode(given, item, reading, "an entry of 'evals'")
    if read is INVALID:
        return None
    pairs = {
        "id": given.get("id") or node_of(f"eval-{place}", item.at),
        "input": _asked(given),
        "metadata": MapNode(extra, {key: item.keys[key] for key in extra}, item.at),
        "description": given.get("name"),
        "expected_output": read.expected_output,
        "criteria": read.expected_output,
        **_checks(read.expectations, read.assertions, reading),
    }
    return _mapping({key: node for key, node in pairs.items() if node is not None}, item.at)


def _asked(given: Mapping[str, Node]) -> Node:
    """The prompt, behind the files that it comes with."""
    prompt, files = given["prompt"], given.get("files")
    if not isinstance(files, ListNode) or not files.items:
        return prompt
    blocks = [_block("file", one) for one in files.items]
    content: Node = ListNode([*blocks, _block("text", prompt)], files.at)
    return ListNode([_mapping({"role": node_of("user", prompt.at), "content": content}, prompt.at)], prompt.at)


def _block(kind: str, value: Node) -> MapNode:
    return _mapping({"type": node_of(kind, value.at), "value": value}, value.at)


def _checks(expectations: Node | None, assertions: Node | None, reading: Reading) -> dict[str, Node]:
    """`assert` of the case, and a threshold that leaves the verdict to it: each entry is required."""
    if expectations is not None and assertions is not None:
        message = "'assertions' is a newer word for 'expectations'; keep one of them"
        reading.report.error("two-spellings", assertions, message)
    node = assertions if assertions is not None else expectations
    if node is None or is_empty(node):
        return {}
    if not isinstance(node, ListNode):
        key = "expectations" if assertions is None else "assertions"
        reading.report.error("bad-value", node, f"'{key}' must be a list of sentences, found {kind_of(node)}")
        return {}
    sentences = [item for item in node.items if isinstance(item, Scalar)]
    entries = [_required(item) for item in node.items if not isinstance(item, Scalar)]
    if sentences:
        rubric = {"type": node_of(JUDGED, node.at), "value": ListNode(list(sentences), node.at)}
        entries.insert(0, _mapping({**rubric, "required": node_of(True, node.at)}, node.at))
    return {"assert": ListNode(entries, node.at), "threshold": node_of(0, node.at)}


def _required(item: Node) -> Node:
    """An assertion that decides, unless it says itself whether it does."""
    if not isinstance(item, MapNode) or item.items.keys() & {"required", "include"}:
        return item
    weight = item.get("weight")
    if isinstance(weight, Scalar) and weight.value == 0:
        return item
    return MapNode({**item.items, "required": node_of(True, item.at)}, {**item.keys, "required": item.at}, item.at)


def _mapping(pairs: Mapping[str, Node], at: Place) -> MapNode:
    return MapNode(dict(pairs), {key: node.at for key, node in pairs.items()}, at)


def _exam(suite: Suite, skill: Skill, path: str, reading: Reading) -> Exam:
    """What is on record of a sitting: the skill's text, the tests, and the files that they attach."""
    paths = {path, str(skill.meta.path)}
    for case in suite.cases:
        blocks = [block for message in case.input if isinstance(message.content, tuple) for block in message.content]
        paths |= {block.path for block in blocks if isinstance(block, FileBlock | ImageBlock) and block.path}
    texts = {_from(skill.directory, one): _normal(reading.reader.read(one)) for one in sorted(paths)}
    texts[DESCRIPTION] = (skill.meta.description or "").encode()
    queries = {case.id: bool(case.metadata["should_trigger"]) for case in suite.cases if case.asks_judge}
    return Exam(skill.meta.id, skill.directory, texts, queries=queries)


def _from(directory: str, path: str) -> str:
    return Path(os.path.relpath(path, directory)).as_posix()


def _normal(data: bytes) -> bytes:
    """Without a byte order mark, and with lines that a line feed alone ends, as on every machine."""
    return data.removeprefix(BOM_UTF8).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
