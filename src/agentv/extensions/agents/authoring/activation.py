"""`activation` of a suite: queries, each with the skill that an agent should load for it (AGENTS.md section 12).

Each query becomes a case: an agent works on it in a workspace with the skills, for up to `max_turns`, and the
assertion `activation` reads from its trace which of them it loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from agentv.authoring.cases.data_files.jsonl import JsonLines
from agentv.authoring.dialects.skills import SKILL, placed_skill, read_skill
from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import AtLeastOne, Unread
from agentv.authoring.source.files import is_directory, is_file, shown
from agentv.authoring.source.nearest import did_you_mean
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, as_data, mapping, node_of, span_of
from agentv.model.run.summary import TAG
from agentv.model.suite.suite import SkillMinimums
from agentv.model.values.values import EMPTY, Json, JsonObject, Span
from agentv.registry.fields import Declared, Doc, Fraction, Nonempty, Text, Verbatim


@dataclass(frozen=True, slots=True)
class AuthoredActivation(Declared):
    """`activation` of a suite."""

    skills: Annotated[Unread, Doc("directory of the skills: each is a directory in it with a `SKILL.md`")]
    queries: Annotated[Unread, Doc("a JSONL file of `query` and `skill`, or a list of such mappings")]
    max_turns: Annotated[AtLeastOne, Verbatim(), Doc("model calls in which the agent may load a skill")] = 1
    min_recall: Annotated[
        Fraction | None, Verbatim(), Doc("every skill must have this recall; single queries may then miss it")
    ] = None
    min_precision: Annotated[
        Fraction | None,
        Verbatim(),
        Doc("every skill must have this precision; single queries may then load it wrongly"),
    ] = None


@dataclass(frozen=True, slots=True)
class AuthoredActivationQuery(Declared):
    """One query of `activation`."""

    query: Annotated[Text, Nonempty(), Verbatim(), Doc("a user's request")]
    skill: Annotated[Text | None, Verbatim(), Doc("the skill that it should load; null: none")]
    metadata: Annotated[JsonObject, Verbatim(), Doc("kept in the row")] = field(default=EMPTY)


Placed = tuple[Node, AuthoredActivationQuery]
"""The node of a query, and the query."""


def read_activation(node: Node, files: Node | None, reading: Reading) -> tuple[Sequence[MapNode], SkillMinimums | None]:
    """Return the cases of all queries, and the minimums for every skill. After reporting mistakes, return no cases.

    Args:
        node: `activation` as authored.
        files: `files` of the suite's workspace, which the agent gets too.
        reading: context of the suite.
    """
    if not isinstance(node, MapNode):
        reading.report.unfit(node, "'activation' must be a mapping")
        return (), None
    reading = reading.part().rendering(False)
    read = shape_of(AuthoredActivation).decode(node.items, node, reading, "'activation'")
    skills = _skills(node.items["skills"], reading) if "skills" in node.items else {}
    queries = list(_queries(node.items["queries"], skills, reading)) if "queries" in node.items else []
    if read is INVALID or not skills:
        return (), None
    gated = read.min_recall is not None or read.min_precision is not None
    expected = {one.skill for _, one in queries}
    for name in (name for name in skills if name not in expected and not reading.report.failed):
        add = reading.report.error if gated else reading.report.warning
        add("bad-value", node.items["queries"], f"no query expects the skill '{name}', so its recall is unknown")
    if reading.report.failed:
        return (), None
    at = node.items["skills"].at
    placed = node_of({place: path for one in skills.values() for place, path in one.items()}, at)
    inside = placed if files is None else ListNode([files, placed], at)
    made = [_case(at, one, list(skills), read.max_turns, inside) for at, one in queries]
    return made, SkillMinimums(read.min_recall, read.min_precision) if gated else None


def _skills(node: Node, reading: Reading) -> dict[str, Mapping[str, str]]:
    """Return the files of each skill by its name: path in the workspace → path relative to the authored file."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str) or not node.value.strip():
        reading.report.unfit(node, "'skills' must be the path of a directory")
        return {}
    found = reading.find(node, "directory")
    if found is None:
        return {}
    paths = sorted(Path(found).iterdir()) if is_directory(found) else []
    paths = [one for one in paths if is_file(str(one / SKILL))]
    if not paths:
        reading.report.error("missing-file", node, f"'{node.text}' has no directory with a {SKILL}")
    skills: dict[str, Mapping[str, str]] = {}
    for path in paths:
        skill = read_skill(str(path / SKILL), reading)
        if skill is None:
            continue
        if skill.meta.id != path.name:
            at = skill.meta.places.get("name", Span.start_of(str(path / SKILL)))
            message = f"this skill is named '{skill.meta.id}', but its directory '{path.name}'"
            reading.report.error("bad-value", at, message, hint="agents load a skill by the name of its directory")
        skills[path.name] = placed_skill(skill, str(Path(span_of(node.at).file).parent))
    return skills


def _queries(node: Node, skills: Mapping[str, object], reading: Reading) -> Iterator[Placed]:
    """Yield the valid queries. Unknown skills and duplicate queries are reported."""
    first: dict[str, Placed] = {}
    for item in _rows(node, reading):
        if not isinstance(item, MapNode):
            reading.report.unfit(item, "a query must be a mapping with 'query' and 'skill'")
            continue
        one = shape_of(AuthoredActivationQuery).decode(item.items, item, reading, "a query")
        if one is INVALID:
            continue
        if one.skill is not None and one.skill not in skills and skills:
            hint = did_you_mean(one.skill, skills) or f"the skills are {', '.join(skills)}"
            reading.report.error("bad-value", item.items["skill"], f"there is no skill '{one.skill}'", hint=hint)
        at, other = first.setdefault(" ".join(one.query.split()), (item, one))
        if other is not one:
            place = span_of(at.at)
            names = " and ".join("no skill" if name is None else f"'{name}'" for name in (other.skill, one.skill))
            end = f", and {names} cannot both be right" if other.skill != one.skill else ""
            message = f"this query already appears at {shown(place.file)}:{place.line}{end}"
            reading.report.error("duplicate-id", item.items["query"], message)
            continue
        yield item, one


def _rows(node: Node, reading: Reading) -> Iterator[Node]:
    """Yield the entries of a list, or the lines of the JSONL file at a path."""
    if isinstance(node, ListNode):
        rows: list[Node | None] = list(node.items)
    elif isinstance(node, Scalar) and isinstance(node.value, str) and node.value.strip():
        path = reading.find(node, "file")
        text = None if path is None else reading.text_of(path, node)
        if path is None or text is None:
            return
        lines = JsonLines(path)
        numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        rows = [lines.exact(number, line.encode(errors="surrogatepass"), reading.report) for number, line in numbered]
    else:
        reading.report.unfit(node, "'queries' must be a list, or the path of a JSONL file")
        return
    if not rows:
        reading.report.error("missing-value", node, "there are no queries")
    yield from (row for row in rows if row is not None)


def _case(item: Node, one: AuthoredActivationQuery, skills: list[Json], max_turns: int, files: Node) -> MapNode:
    """Return the case of a query in the form of an entry of `tests`."""
    name = " ".join(one.query.split())
    entry: dict[str, Json] = {"type": TAG, "value": one.skill, "skills": skills, "max_turns": max_turns}
    keys: dict[str, Json] = {
        "id": f"{TAG}: {name}",
        "input": one.query,
        "description": "no skill should be loaded" if one.skill is None else f"'{one.skill}' should be loaded",
        "metadata": {**one.metadata, "query": one.query, "skill": one.skill},
        "tags": [TAG],
        "assert": [{key: value for key, value in entry.items() if value is not None}],
        "threshold": 0.5,
        "skip_defaults": True,
        "max_turns": max_turns,
        "on_limit": "grade",
    }
    workspace = mapping({"files": files}, item.at)
    nodes = {key: as_data(node_of(value, item.at)) for key, value in keys.items()}
    return mapping({**nodes, "workspace": workspace}, item.at)
