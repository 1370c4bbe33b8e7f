"""`SKILL.md`: a skill's name and description, and the instructions that it gives (https://agentskills.io/specification).

The file opens with YAML between two lines of `---`; what follows is the instructions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from msgspec import Struct

from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.files import is_directory, is_file, shown, upwards
from agentv.authoring.source.nodes import MapNode, Node, Scalar, is_empty, kind_of, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.model.suite.exam import PromptMeta
from agentv.model.values.span import Span

SKILL = "SKILL.md"

PLACES = (".claude/skills", ".agents/skills")
"""Directories of a workspace where agents look for skills: Claude Code in the first, the others in the second."""

_LEFT_OUT = frozenset({"evals", ".git", ".agentv", "__pycache__"})
"""Entries of a skill's directory that an agent does not get; its evals say what is expected of it."""

_FRONT = re.compile(r"---[ \t]*\r?\n(?P<yaml>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class Skill(Struct, frozen=True):
    """One skill.

    Attributes:
        meta: its name and description; `path` is the file.
        directory: of the file, absolute.
        instructions: the text below the front matter, stripped.
        at: position of the instructions.
    """

    meta: PromptMeta
    directory: str
    instructions: str
    at: Span


def skill_above(directory: str, at: Node, reading: Reading) -> Skill | None:
    """The skill that a file in a directory belongs to: the closest `SKILL.md` above it.

    Reports a file without one up to the root of the repository, and mistakes in the `SKILL.md`.
    """
    path = closest_skill(directory, reading)
    if path is None:
        message = f"this file tests a skill, but there is no {SKILL} in its directory or above"
        notes = [f"tried {shown(one)}" for one in _places(directory, reading)]
        reading.report.error("missing-file", at, message, notes=notes)
        return None
    return read_skill(path, reading)


def closest_skill(directory: str, reading: Reading) -> str | None:
    """The path of the closest `SKILL.md` above a directory, up to the root of the repository."""
    return next((one for one in _places(directory, reading) if is_file(one)), None)


def _places(directory: str, reading: Reading) -> list[str]:
    return [str(Path(parent) / SKILL) for parent in upwards(directory, reading.places.root)]


def without_file(name: str, directory: str, at: Node) -> Skill:
    """A skill of which only the tests are there: it gives no instructions."""
    return Skill(PromptMeta(name, ""), directory, "", span_of(at.at))


def read_skill(path: str, reading: Reading) -> Skill | None:
    """The skill of a `SKILL.md`; None where the file cannot be read. What is wrong in it is reported."""
    report, top = reading.report, Span(path, 1, 1, 1, 2)
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
    meta = _meta(read_yaml(path, text[: front.end("yaml")].encode(), report).value, path, report)
    if report.failed:
        return None
    line = 1 + text.count("\n", 0, front.end())
    return Skill(meta, str(Path(path).parent), text[front.end() :].strip(), Span(path, line, 1, line, 2))


def placed_skill(skill: Skill, home: str, tests: str = "") -> dict[str, str]:
    """Place in the workspace → path, relative to a directory.

    Args:
        skill: with a `SKILL.md`.
        home: the directory.
        tests: name of a further entry of the skill's directory that is no part of it.
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


def _meta(front_matter: Node | None, path: str, report: Report) -> PromptMeta:
    """The front matter, of which a test needs the name and the description."""
    name = Path(path).parent.name
    if not isinstance(front_matter, MapNode):
        if front_matter is not None:
            report.error(
                "bad-value",
                front_matter,
                f"the front matter of {SKILL} must be a mapping, found {kind_of(front_matter)}",
            )
        return PromptMeta(name, path)
    texts = {key: _text(key, front_matter, report) for key in ("name", "description")}
    places = {key: span_of(node.at) for key, node in front_matter.items.items()}
    return PromptMeta(texts["name"] or name, path, texts["description"], places=places)


def _text(key: str, front_matter: MapNode, report: Report) -> str | None:
    node = front_matter.get(key)
    if node is None or is_empty(node):
        return None
    if isinstance(node, Scalar):
        return node.text.strip() if not isinstance(node.value, str) else node.value.strip()
    report.error("bad-value", node, f"'{key}' must be text, found {kind_of(node)}")
    return None
