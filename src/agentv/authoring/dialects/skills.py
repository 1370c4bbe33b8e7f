"""Translates the tests of a skill in the formats of Anthropic's skill-creator and agentskills.io to an eval file.

`eval_queries.json` is a list of `{"query", "should_trigger"}`; `evals.json` is `{"skill_name", "evals": [{"id",
"prompt", "expected_output", "files", "expectations"}]}`, with `assertions` instead in newer files. Both belong to the
closest `SKILL.md` above them. All texts are data: placeholders in them are not filled in.

A model gets the skill's instructions as the system message, and the files of an eval in the user message. An agent
works in a workspace that contains the files, once with the skill where agents look for skills, and once without it.

Sources: https://agentskills.io/skill-creation/optimizing-descriptions, …/evaluating-skills; the page
`references/schemas.md` of the skill-creator in https://github.com/anthropics/skills.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from msgspec import Struct

from agentv.authoring.assertions.typed_entries import RUBRIC
from agentv.authoring.cases.triggering import RUNS_OF_FILES, of_agentskills, prompt_keys
from agentv.authoring.dialects.exam import PROVIDER, exam_record
from agentv.authoring.dialects.recognition import DocumentDialect, Surroundings, Translation
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import Unread
from agentv.authoring.fields.spellings import SUITE
from agentv.authoring.source.files import is_directory, is_file, shown, upwards
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import (
    ListNode,
    MapNode,
    Node,
    Scalar,
    as_data,
    is_empty,
    kind_of,
    mapping,
    node_of,
    plain,
    span_of,
)
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.suite.exam import PromptMeta
from agentv.model.values.values import Json, Span
from agentv.registry.fields import AsWritten, Declared, Doc, Nonempty, Text, Verbatim

SKILL = "SKILL.md"

PLACES = (".claude/skills", ".agents/skills")
"""Directories of a workspace in which agents look for skills: Claude Code in the first, others in the second."""

_LEFT_OUT = frozenset({"evals", ".git", ".agentv", "__pycache__"})
"""Entries of a skill's directory that an agent does not get; its evals would give the expected answers away."""

_FRONT = re.compile(r"---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class Skill(Struct, frozen=True):
    """One skill.

    Attributes:
        meta: name and description; `path` is that of the file.
        directory: absolute path of its directory.
        instructions: the text below the front matter, stripped.
        at: position of the instructions.
    """

    meta: PromptMeta
    directory: str
    instructions: str
    at: Span


def read_skill(path: str, reading: Reading) -> Skill | None:
    """The skill of a `SKILL.md`, or None after reporting errors."""
    report, top = reading.report, Span.start_of(path)
    try:
        text = reading.reader.read(path).decode("utf-8-sig")
    except OSError as error:
        report.error("missing-file", top, f"cannot read {shown(path)}: {error.strerror}")
        return None
    except UnicodeDecodeError as error:
        report.error("not-utf-8", top, f"not UTF-8 text (byte {error.start + 1})")
        return None
    front = _FRONT.match(text)
    if front is None:
        hint = "start the file with a line '---', 'name: …', 'description: …' and another line '---'"
        report.error("bad-value", top, f"{SKILL} must start with its name and description", hint=hint)
        return None
    report = report.section()
    front_matter = read_yaml(path, text[: front.end("yaml")].encode(), report).value
    name = Path(path).parent.name
    if not isinstance(front_matter, MapNode):
        if front_matter is not None:
            report.unfit(front_matter, f"the front matter of {SKILL} must be a mapping")
        meta = PromptMeta(name, path)
    else:
        texts = {key: _text(key, front_matter, report) for key in ("name", "description")}
        places = {key: span_of(node.at) for key, node in front_matter.items.items()}
        meta = PromptMeta(texts["name"] or name, path, texts["description"], places=places)
    if report.failed:
        return None
    line = 1 + text.count("\n", 0, front.end())
    return Skill(meta, str(Path(path).parent), text[front.end() :].strip(), Span(path, line, 1, line, 2))


def placed_skill(skill: Skill, home: str, tests: str = "") -> dict[str, str]:
    """Path in the workspace → path of the skill's file or directory, relative to `home`.

    Args:
        skill: a skill with a `SKILL.md`.
        home: directory to which the paths are relative.
        tests: name of a further entry of the skill's directory to omit.
    """
    directory, left_out = Path(skill.directory), {*_LEFT_OUT, tests}
    found = {one.name: os.path.relpath(one, home) for one in sorted(directory.iterdir()) if one.name not in left_out}
    name = PurePosixPath(skill.meta.id).name or directory.name
    return {f"{place}/{name}/{inner}": path for place in PLACES for inner, path in found.items()}


def skills_beside(skill: Skill, reading: Reading) -> Iterator[Skill]:
    """The other skills in the directory that contains this one's, sorted by directory.

    Mistakes in them are not reported here, because they are not under test.
    """
    own, library = Path(skill.directory), Path(skill.directory).parent
    if skill.directory == reading.places.root or not is_directory(str(library)):
        return
    quiet = reading.reporting_to(Report())
    for one in sorted(library.iterdir()):
        if one != own and is_file(str(one / SKILL)):
            found = read_skill(str(one / SKILL), quiet)
            if found is not None:
                yield found


def _text(key: str, front_matter: MapNode, report: Report) -> str | None:
    node = front_matter.get(key)
    if node is None or is_empty(node):
        return None
    if isinstance(node, Scalar):
        return node.text.strip() if not isinstance(node.value, str) else node.value.strip()
    report.unfit(node, f"'{key}' must be text")
    return None


WITH_SKILL = "with-skill"
WITHOUT_SKILL = "without-skill"

_INPUTS = ("evals", "files")

_KEYS = frozenset({"evals", "skill_name"})
_CASES = frozenset(SUITE.spelled("tests"))
_TEXTS = frozenset({"input", "expected_output", "criteria", "assert", "workspace"})
"""Keys of a case whose texts are templates in an eval file, but data in the tests of a skill."""

_QUERY_KEYS = frozenset({"query", "should_trigger"})


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


class SkillDialect(DocumentDialect):
    """The dialect of a skill's `evals.json`, and of lists of queries that test its description."""

    title = "a file with tests of an Agent Skill"

    def claims(self, path: str, root: Node, data: bytes) -> bool:  # noqa: ARG002
        """Whether a file contains queries or evals."""
        if isinstance(root, ListNode):
            return any(isinstance(item, MapNode) and not _QUERY_KEYS.isdisjoint(item.items) for item in root.items)
        return isinstance(root, MapNode) and "evals" in root.items and _CASES.isdisjoint(root.items)

    def translate(self, path: str, root: Node, reading: Reading, around: Surroundings) -> Translation | None:
        """The tests as an eval file, or None after reporting that the skill cannot be read.

        Evals can run without a `SKILL.md`; queries cannot, because they test its description.
        """
        reading = reading.rendering(False)
        directory = Path(path).parent
        tried = [str(Path(parent) / SKILL) for parent in upwards(str(directory), reading.places.root)]
        closest = next(filter(is_file, tried), None)
        if closest is not None:
            skill = read_skill(closest, reading)
        elif isinstance(root, MapNode):
            home = directory.parent if directory.name == "evals" else directory
            name_node = root.get("skill_name")
            name = name_node.text if isinstance(name_node, Scalar) and not is_empty(name_node) else None
            if name is not None:
                message = (
                    f"there is no {SKILL} in this directory or above: prompts are sent without the skill's instructions"
                )
                reading.report.warning("missing-file", name_node, message)
            skill = Skill(PromptMeta(name or home.name, ""), str(home), "", span_of(root.at))
        else:
            message = f"this file tests a skill, but there is no {SKILL} in its directory or above"
            reading.report.error("missing-file", root, message, notes=[f"tried {shown(one)}" for one in tried])
            return None
        if skill is None:
            return None
        of_agents = isinstance(root, MapNode) and around.agents()
        pairs: dict[str, Node | None] = {
            "name": node_of(skill.meta.id, root.at),
            "default_provider": node_of(PROVIDER, root.at),
            "require_all": node_of(True, root.at),
        }
        if skill.meta.path and not of_agents:  # half of an agent's trials are without the skill
            pairs["exam"] = exam_record(skill.meta, skill.directory, root.at)
        if isinstance(root, MapNode):
            pairs |= _evals(root, skill, reading, of_agents=of_agents)
        elif isinstance(root, ListNode):
            meta = skill.meta
            others = {one.meta.id: one.meta.description or "" for one in skills_beside(skill, reading)}
            about = {**prompt_keys(meta, others, root, shown(meta.path or ""), reading.report), "runs": RUNS_OF_FILES}
            pairs["triggering"] = mapping(
                {"queries": of_agentskills(root), **{key: node_of(one, root.at) for key, one in about.items()}}, root.at
            )
        return Translation(
            mapping(pairs, root.at), not_missing=frozenset({"tests"}), home=skill.directory, reads_on=True
        )


def _evals(root: MapNode, skill: Skill, reading: Reading, *, of_agents: bool) -> dict[str, Node | None]:
    """Items of the eval file for `evals`, with the skill as the system message, or as a variant for agents."""
    at = root.at
    name = root.get("skill_name")
    if name is not None and (not isinstance(name, Scalar) or name.text != skill.meta.id):
        what = f"'{name.text}'" if isinstance(name, Scalar) else kind_of(name)
        message = f"these evals belong to {what}, but the closest {SKILL} belongs to '{skill.meta.id}'"
        reading.report.warning("bad-value", name, message)
    pairs: dict[str, Node | None] = {
        "metadata": node_of({key: plain(node) for key, node in root.items.items() if key not in _KEYS}, at)
    }
    if of_agents:
        variants: list[dict[str, Json]] = [{"name": WITHOUT_SKILL}]
        if skill.meta.path:
            variants.append({"name": WITH_SKILL, "overlay": overlay_of(skill, span_of(at).file)})
            pairs["variants"] = node_of(variants, at)
        pairs["workspace"] = mapping({}, at)
    elif skill.instructions:
        pairs["input"] = as_data(node_of([{"role": "system", "content": skill.instructions}], skill.at))
    evals = root.items["evals"]
    if not isinstance(evals, ListNode):
        reading.report.unfit(evals, "'evals' must be a list")
        return pairs
    cases = [_case_of(item, number, reading, of_agents=of_agents) for number, item in enumerate(evals.items, 1)]
    pairs["tests"] = ListNode([case for case in cases if case is not None], evals.at)
    return pairs


def _case_of(item: Node, place: int, reading: Reading, *, of_agents: bool) -> MapNode | None:
    """The case for an entry of `evals`, or None after reporting that it is invalid."""
    if not isinstance(item, MapNode):
        reading.report.unfit(item, "an entry of 'evals' must be a mapping", "bad-case")
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
    given_pairs = {key: node for key, node in pairs.items() if node is not None and not is_empty(node)}
    return mapping({key: as_data(node) if key in _TEXTS else node for key, node in given_pairs.items()}, item.at)


def _prompt_of(given: Mapping[str, Node]) -> Node:
    """The prompt, as a message with its files before it if there are any."""
    prompt, files = given["prompt"], given.get("files")
    if not isinstance(files, ListNode) or not files.items:
        return prompt
    blocks = [_block("file", one) for one in files.items]
    content: Node = ListNode([*blocks, _block("text", prompt)], files.at)
    return ListNode([mapping({"role": node_of("user", prompt.at), "content": content}, prompt.at)], prompt.at)


def _workspace_of(given: Mapping[str, Node], reading: Reading) -> Node | None:
    """The workspace with the files of an eval, or None if it has none. Two files with the same path are reported."""
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
    return mapping({"files": mapping(placed, files.at)}, files.at)


def _block(kind: str, value: Node) -> MapNode:
    return mapping({"type": node_of(kind, value.at), "value": value}, value.at)


def _checks(item: MapNode, reading: Reading) -> Node | None:
    """The case's assertions: sentences to be judged together, and assertions of agentv.

    If none exist, a rubric for the expected output. None after reporting errors.
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
        reading.report.unfit(node, f"'{given[0]}' must be a list of sentences")
        return None
    expected = item.get("expected_output")
    if expected is not None and not is_empty(expected):
        return node_of([{"type": RUBRIC}], expected.at)
    message = "this eval checks nothing: it has no expectations and no expected output"
    reading.report.error("checks-nothing", item, message, hint="add 'expectations' or 'expected_output'")
    return None


def overlay_of(skill: Skill, eval_file: str) -> dict[str, str]:
    """Path in the workspace → path of the skill's file or directory, relative to the directory of the eval file.

    Args:
        skill: a skill with a `SKILL.md`.
        eval_file: absolute path; the entry of the skill's directory that contains it is omitted.
    """
    own = Path(eval_file)
    return placed_skill(skill, str(own.parent), own.relative_to(skill.directory).parts[0])


def place_of(path: str) -> str:
    """The path in the workspace of an eval's input file: `a.csv` for `evals/files/a.csv`."""
    parts = [part for part in PurePosixPath(path).parts if part not in {".", "..", "/"}]
    for prefix in _INPUTS:
        parts = parts[1:] if len(parts) > 1 and parts[0] == prefix else parts
    return "/".join(parts) or path


TESTS_OF_SKILLS = SkillDialect()
