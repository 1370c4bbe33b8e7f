"""Makes a page of each section `### TYPE` of the reference page of assertions, with the example of the type.

The reference page stays the one source: on the site it keeps what is before and around the sections, and its links, and
those of other pages, lead to the pages of the types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from assertion_examples import Example, file_name

SOURCE = "reference/assertions.md"
FOLDER = "reference/assertions"
LANGUAGES = {".py": "python", ".json": "json", ".md": "markdown"}
LINK = re.compile(r"\]\((?P<path>[^)#\s]*)(?P<anchor>#[^)\s]+)?\)")


@dataclass
class Group:
    """The types under one heading, and what holds for all of them."""

    heading: str
    intro: str = ""
    sections: dict[str, str] = field(default_factory=dict)


def groups_of(text: str) -> list[Group]:
    """The groups of the reference page that have types in them. Headings are those outside fenced blocks."""
    found: list[Group] = []
    for part in _split(text, "## ")[1:]:
        heading, _, rest = part.partition("\n")
        intro, *sections = _split(rest, "### ")
        pairs = (section.partition("\n") for section in sections)
        group = Group(heading, intro.strip(), {name.strip(): body.strip() for name, _, body in pairs})
        if group.sections:
            found.append(group)
    return found


def _split(text: str, mark: str) -> list[str]:
    """The text before the first heading, then each heading with what follows it."""
    parts, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if line.startswith(mark) and not fenced:
            parts.append(line.removeprefix(mark))
        else:
            parts[-1] += line
    return parts


def anchors_of(text: str) -> dict[str, str]:
    """The anchor of each type's section → the file name of its page."""
    names = (name for group in groups_of(text) for name in group.sections)
    return {name.replace(":", ""): f"{file_name(name)}.md" for name in names}


def index_page(text: str) -> str:
    """The reference page without the sections of types: each group lists its types."""
    anchors = anchors_of(text)
    for group in groups_of(text):
        for name, body in group.sections.items():
            page = f"assertions/{file_name(name)}.md"
            text = text.replace(f"### {name}\n\n{body}\n", f"- [`{name}`]({page}): {_summary(body)}\n", 1)
    text = re.sub(r"(^- \[`[^\n]+\n)\n(?=- \[`)", r"\1", text, flags=re.MULTILINE)
    return retarget(text, {f"#{anchor}": f"assertions/{page}" for anchor, page in anchors.items()})


def _summary(body: str) -> str:
    """The first sentence of a section: that of the type's docstring."""
    lines = (line for line in body.splitlines() if line and not line.startswith("<!--"))
    return next(lines)


def type_pages(text: str, examples: Mapping[str, Example]) -> Iterator[tuple[str, str]]:
    """The path in the site, and the text, of the page of each type."""
    anchors = anchors_of(text)
    targets = {f"#{anchor}": page for anchor, page in anchors.items()}
    for group in groups_of(text):
        for name, body in group.sections.items():
            parts = [f"# {name}", body, *_example_parts(examples[name])]
            if group.intro:
                parts += [f"## {group.heading}", group.intro]
            page = "\n\n".join(parts) + "\n"
            yield f"{FOLDER}/{file_name(name)}.md", _one_level_down(retarget(page, targets))


def _example_parts(example: Example) -> Iterator[str]:
    """The eval file, the files that it names, and what a run finds."""
    yield f"## Example\n\n`{_shown(example.file)}`, which the tests of agentv run:"
    yield f"```yaml\n{example.text}```"
    for path in example.further_files:
        yield _collapsed(path)
    yield "The run finds:\n\n```text\n" + "\n".join(one.as_text() for one in example.outcomes) + "\n```"


def _collapsed(path: Path) -> str:
    """A file that opens on a click."""
    content = path.read_text(encoding="utf-8")
    block = f"```{LANGUAGES.get(path.suffix, 'text')}\n{content}```"
    return f'??? note "{_shown(path)}"\n\n' + "\n".join(f"    {line}".rstrip() for line in block.splitlines())


def _shown(path: Path) -> str:
    """A path as seen from the root of the repository."""
    return path.relative_to(Path(__file__).parents[2]).as_posix()


def retarget(text: str, targets: Mapping[str, str]) -> str:
    """The text with links that lead elsewhere: `path#anchor`, as written → the new target."""

    def replaced(found: re.Match[str]) -> str:
        written = f"{found['path']}{found['anchor'] or ''}"
        return f"]({targets.get(written, written)})"

    return LINK.sub(replaced, text)


def _one_level_down(text: str) -> str:
    """The text with links that work from the folder of the types' pages; those to types already do."""

    def moved(found: re.Match[str]) -> str:
        path, anchor = found["path"], found["anchor"] or ""
        if path.startswith("http") or ("/" not in path and path.endswith(".md") and not anchor and _is_a_type(path)):
            return found[0]
        return f"](../{path or 'assertions.md'}{anchor})"

    return LINK.sub(moved, text)


def _is_a_type(page: str) -> bool:
    """Whether a page is one of a type: it was put there by `retarget`, and is no page of the reference."""
    return not (Path(__file__).parents[1] / "reference" / page).exists()
