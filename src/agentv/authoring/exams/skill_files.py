"""The tests of a skill as Anthropic's skill-creator and agentskills.io write them, as exams.

`eval_queries.json` is a bare array of `{"query", "should_trigger"}`; `evals.json` is `{"skill_name", "evals": [{"id",
"prompt", "expected_output", "files", "expectations"}]}`, where newer files say `assertions`. Both belong to the closest
`SKILL.md` above them. All of it is data: no placeholder in it is filled in.

A model gets the skill's instructions as the system's message, and the files of an eval in its question. An agent works
in a workspace that holds the files, once with the skill where agents look for skills, and once without it.

Sources: https://agentskills.io/skill-creation/optimizing-descriptions, …/evaluating-skills; the page
`references/schemas.md` of the skill-creator in https://github.com/anthropics/skills.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.assertions.entries import JUDGED
from agentv.authoring.assertions.judging import PASTE_BESIDE
from agentv.authoring.exams.skill_variants import WITH_SKILL, WITHOUT_SKILL, overlay_of, place_of
from agentv.authoring.exams.skills import SKILL, Skill, closest_skill, skill_above, skills_beside, without_file
from agentv.authoring.exams.texts import texts_of
from agentv.authoring.exams.triggering import cases_of
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import Unread
from agentv.authoring.header.header import Header
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Place,
    Scalar,
    is_empty,
    kind_of,
    node_of,
    plain,
    span_of,
)
from agentv.model.suite.exam import Exam
from agentv.model.suite.suite import Case, Suite
from agentv.registry.fields import AsWritten, Declared, Doc, Nonempty, Text, Verbatim

_KEYS = frozenset({"evals", "skill_name"})


@dataclass(frozen=True, slots=True)
class AuthoredEval(Declared):
    """One entry of `evals`. Further keys are kept as metadata."""

    prompt: Annotated[Text, Nonempty(), Verbatim(), Doc("what the user asks")]
    id: Annotated[Text | None, Nonempty(), Verbatim(), Doc("unique in the file; default: its position")] = None
    name: Annotated[Text | None, Verbatim(), Doc("display name")] = None
    expected_output: Annotated[Text | None, Verbatim(), Doc("description of a good answer")] = None
    files: Annotated[tuple[Annotated[str, AsWritten()], ...], Verbatim(), Doc("relative to the skill's directory")] = ()
    expectations: Annotated[Unread, Doc("sentences that must be true of the answer")] = None
    assertions: Annotated[Unread, Doc("the same as expectations; an entry may also be an agentv assertion")] = None


def skill_exam(root: Node, path: str, reading: Reading) -> SkillExam | None:
    """The reader of a skill's tests; None if the skill cannot be read, which is reported.

    Evals can run without a `SKILL.md`. Queries cannot, because its description is what they test.
    """
    directory = Path(path).parent
    if isinstance(root, MapNode) and closest_skill(str(directory), reading) is None:
        skill: Skill | None = _without_file(root, directory, reading)
    else:
        skill = skill_above(str(directory), root, reading)
    if skill is None:
        return None
    places = replace(reading.places, suite=skill.directory)  # paths count from the skill
    return SkillExam(root, skill, replace(reading.rendering(False), places=places))


def _without_file(root: MapNode, directory: Path, reading: Reading) -> Skill:
    """The skill that evals name, without its instructions; its directory is the one around `evals/`."""
    home = directory.parent if directory.name == "evals" else directory
    name_node = root.get("skill_name")
    name = name_node.text if isinstance(name_node, Scalar) and not is_empty(name_node) else None
    if name is not None:
        message = f"there is no {SKILL} in this directory or above: prompts are sent without the skill's instructions"
        reading.report.warning("missing-file", name_node, message)
    return without_file(name or home.name, str(home), root)


class SkillExam(Struct, frozen=True):
    """Reads the tests of a skill.

    Attributes:
        root: a list of queries, or the mapping with `evals`.
        reading: of the suite; no text of a skill is rendered.
        of_agents: agents work on the evals, in workspaces.
    """

    root: Node
    skill: Skill
    reading: Reading
    of_agents: bool = False

    @property
    def not_missing(self) -> frozenset[str]:
        """These files name no model, rightly or wrongly."""
        return frozenset()

    def header(self) -> MapNode:
        """The skill's name, its instructions as the system's message, and what else the file says, as metadata."""
        at, skill = self.root.at, self.skill
        pairs: dict[str, Node] = {"name": node_of(skill.meta.id, at)}
        if isinstance(self.root, MapNode):
            _check_name(self.root, skill, self.reading)
            extra = {key: plain(node) for key, node in self.root.items.items() if key not in _KEYS}
            pairs["metadata"] = node_of(extra, at)
            if self.of_agents:
                pairs |= self._of_agents()
            elif skill.instructions:
                pairs["input"] = node_of([{"role": "system", "content": skill.instructions}], skill.at)
        return _mapping(pairs, at)

    def _of_agents(self) -> dict[str, Node]:
        """An empty workspace, and the variants: the one without the skill is what the other is compared with."""
        workspace, variants = _mapping({}, self.root.at), [node_of({"name": WITHOUT_SKILL}, self.root.at)]
        if self.skill.meta.path:
            overlay = overlay_of(self.skill, span_of(self.root.at).file)
            variants.append(node_of({"name": WITH_SKILL, "overlay": overlay}, self.root.at))
            return {"workspace": workspace, "variants": ListNode(variants, self.root.at)}
        return {"workspace": workspace}

    def queries(self, header: Header) -> tuple[Case, ...]:
        """The queries of a list; the judge also sees the descriptions of the other skills next to this one."""
        header.cases.notes.judging.advice = PASTE_BESIDE
        if isinstance(self.root, MapNode):
            return ()
        others = {one.meta.id: one.meta.description or "" for one in skills_beside(self.skill, self.reading)}
        known = {name: text for name, text in others.items() if text}
        return cases_of(self.root, self.skill.meta, known, header, header.reading, of_file=True)

    def cases(self, header: Header) -> Iterator[tuple[Case, ...]]:
        """The evals."""
        evals = self.root.items["evals"] if isinstance(self.root, MapNode) else ListNode([], self.root.at)
        if not isinstance(evals, ListNode):
            self.reading.report.error("bad-value", evals, f"'evals' must be a list, found {kind_of(evals)}")
            return
        for place, item in enumerate(evals.items, 1):
            lowered = _case_of(item, place, self.reading, of_agents=self.of_agents)
            yield header.cases.read(lowered, header.reading) if lowered is not None else ()

    def exam(self, suite: Suite, read: Mapping[str, bytes]) -> Exam | None:
        """The data that an attempt is recorded with. Another skill is shown to the judge, and is no part of this one.

        None without a `SKILL.md`: nothing is recorded of a skill that is not there. Nor of agents: half of their trials
        are without the skill.
        """
        skill = self.skill
        if not skill.meta.path or self.of_agents:
            return None
        own = {path: data for path, data in read.items() if Path(path).name != SKILL or path == skill.meta.path}
        queries = {case.id: bool(case.metadata["should_trigger"]) for case in suite.cases if case.asks_judge}
        return Exam(skill.meta.id, skill.directory, texts_of(skill.directory, skill.meta, suite, own), queries=queries)


def _check_name(root: MapNode, skill: Skill, reading: Reading) -> None:
    name = root.get("skill_name")
    if name is not None and (not isinstance(name, Scalar) or name.text != skill.meta.id):
        what = f"'{name.text}'" if isinstance(name, Scalar) else kind_of(name)
        message = f"these evals belong to {what}, but the closest {SKILL} belongs to '{skill.meta.id}'"
        reading.report.warning("bad-value", name, message)


def _case_of(item: Node, place: int, reading: Reading, *, of_agents: bool) -> MapNode | None:
    """The case that an entry of `evals` stands for; None where it is wrong, which is reported."""
    if not isinstance(item, MapNode):
        reading.report.error("bad-case", item, f"an entry of 'evals' must be a mapping, found {kind_of(item)}")
        return None
    rules = shape_of(AuthoredEval).rules
    extra = {key: node for key, node in item.items.items() if key not in rules and not nearest(key, rules)}
    given = {key: node for key, node in item.items.items() if key not in extra}
    read = shape_of(AuthoredEval).decode(given, item, reading, "an entry of 'evals'")
    checks = None if read is INVALID else _checks(item, reading)
    if checks is None:
        return None
    pairs = {
        "id": node_of(f"eval-{place}", item.at) if is_empty(given.get("id")) else given["id"],
        "input": given["prompt"] if of_agents else _prompt_of(given),
        "workspace": _workspace_of(given, reading) if of_agents else None,
        "metadata": MapNode(extra, {key: item.keys[key] for key in extra}, item.at),
        "description": given.get("name"),
        "expected_output": given.get("expected_output"),
        "criteria": given.get("expected_output"),
        "assert": checks,
    }
    return _mapping({key: node for key, node in pairs.items() if node is not None and not is_empty(node)}, item.at)


def _prompt_of(given: Mapping[str, Node]) -> Node:
    """The prompt, behind the files that it comes with."""
    prompt, files = given["prompt"], given.get("files")
    if not isinstance(files, ListNode) or not files.items:
        return prompt
    blocks = [_block("file", one) for one in files.items]
    content: Node = ListNode([*blocks, _block("text", prompt)], files.at)
    return ListNode([_mapping({"role": node_of("user", prompt.at), "content": content}, prompt.at)], prompt.at)


def _workspace_of(given: Mapping[str, Node], reading: Reading) -> Node | None:
    """The files of an eval, in the workspace of its agent; two that would lie in one place are reported."""
    files = given.get("files")
    if not isinstance(files, ListNode) or not files.items:
        return None
    placed: dict[str, Node] = {}
    for one in files.items:
        place = place_of(str(plain(one)))
        if place in placed:
            first = plain(placed[place])
            reading.report.error("bad-value", one, f"'{plain(one)}' and '{first}' are both '{place}' in the workspace")
        placed[place] = one
    return _mapping({"files": _mapping(placed, files.at)}, files.at)


def _block(kind: str, value: Node) -> MapNode:
    return _mapping({"type": node_of(kind, value.at), "value": value}, value.at)


def _checks(item: MapNode, reading: Reading) -> Node | None:
    """The case's assertions: sentences are judged together, and anything else is an assertion of ours.

    Where there are none, the expected output is what is judged. None where something is wrong, which is reported.
    """
    given = [key for key in ("expectations", "assertions") if not is_empty(item.get(key))]
    if len(given) > 1:
        message = "'assertions' is a newer name of 'expectations'; keep one of them"
        reading.report.error("two-spellings", item.keys["assertions"], message)
        return None
    if given:
        node = item.items[given[0]]
        if isinstance(node, ListNode):
            return node
        reading.report.error("bad-value", node, f"'{given[0]}' must be a list of sentences, found {kind_of(node)}")
        return None
    expected = item.get("expected_output")
    if expected is not None and not is_empty(expected):
        return node_of([{"type": JUDGED}], expected.at)
    message = "this eval checks nothing: it has no expectations and no expected output"
    reading.report.error("checks-nothing", item, message, hint="add 'expectations' or 'expected_output'")
    return None


def _mapping(pairs: Mapping[str, Node], at: Place) -> MapNode:
    return MapNode(dict(pairs), {key: node.at for key, node in pairs.items()}, at)
