"""Hooks of mkdocs: generated parts, pages of assertion types, fenced blocks, and links that leave `docs`."""

from __future__ import annotations

import posixpath
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from assertion_examples import Example, file_name, run_examples
from assertion_pages import FOLDER, SOURCE, anchors_of, groups_of, index_page, retarget, type_pages
from generate import complete
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parents[1]
FENCE = re.compile(r"^```(?P<language>[a-z]+) (?P<marks>[^\n`]+)$", re.MULTILINE)
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<path>\.\./[^)#\s]*)(?:#[^)\s]+)?\)")

LINKED = re.compile(r"\[(?P<text>[^\]]+)\]\([^)\s]+\)")

PICTURE = re.compile(r"!\[(?P<alt>[^\]]+)\]\((?P<path>[^)]+)\.webp\)")

FOREIGN = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(?P<address>https?:[^\"\s>]+)")


@cache
def _source() -> str:
    return complete((DOCS / SOURCE).read_text(encoding="utf-8"))


@cache
def _examples() -> dict[str, Example]:
    with tempfile.TemporaryDirectory() as folder:
        return run_examples(Path(folder) / "run")


def on_config(config: MkDocsConfig) -> None:
    """List the pages of the types in the navigation, after the page of all of them."""
    groups = [
        {group.heading: [{name: f"{FOLDER}/{file_name(name)}.md"} for name in group.sections]}
        for group in groups_of(_source())
    ]
    for section in config.nav or []:
        for entries in section.values():
            if isinstance(entries, list) and {"Assertions": SOURCE} in entries:
                entries[entries.index({"Assertions": SOURCE})] = {"Assertions": [SOURCE, *groups]}


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the pages of the types, and `llms.txt`."""
    for path, text in type_pages(_source(), _examples()):
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "llms.txt", content=_llms_txt(config)))


def _llms_txt(config: MkDocsConfig) -> str:
    """What agentv is, and each page with its first sentence, by section of the navigation (llmstxt.org)."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for section in config.nav or []:
        for title, entries in section.items():
            lines += [f"## {title}", "", *links(entries), ""]
    return "\n".join(lines)


def links(entries: object) -> Iterator[str]:
    """A line for each page of the navigation: `- [Title](address): first sentence`."""
    if isinstance(entries, str):
        if entries.startswith(f"{FOLDER}/"):  # pages of assertion types: the page of all of them is listed
            return
        text = (DOCS / entries).read_text(encoding="utf-8")
        title = next(line for line in text.splitlines() if line.startswith("# "))[2:]
        yield f"- [{title}]({entries.removesuffix('.md')}.html): {_first_sentence(text)}"
    elif isinstance(entries, dict):
        for inner in entries.values():
            yield from links(inner)
    elif isinstance(entries, list):
        for inner in entries:
            yield from links(inner)


def _first_sentence(text: str) -> str:
    paragraph = next((part for part in text.split("\n\n")[1:] if part[:1].isalnum() or part[:1] in "`["), "")
    return LINKED.sub(r"\g<text>", " ".join(paragraph.split())).split(". ")[0].rstrip(".:")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # mkdocs passes them by name
    """A page as the site shows it."""
    path = page.file.src_uri
    markdown = complete(markdown)
    if path == SOURCE:
        markdown = index_page(markdown)
    elif not path.startswith(f"{FOLDER}/"):
        start = posixpath.dirname(path) or "."
        targets = {
            f"{posixpath.relpath(SOURCE, start)}#{anchor}": posixpath.relpath(f"{FOLDER}/{name}", start)
            for anchor, name in anchors_of(_source()).items()
        }
        markdown = retarget(markdown, targets)
    markdown = PICTURE.sub(_in_both_themes, markdown)
    return FENCE.sub(_with_title, _without_outside_links(markdown, path))


def _in_both_themes(found: re.Match[str]) -> str:
    """A picture in the light theme, and its dark twin, each with a link to itself; the theme hides one of them."""
    alt, path = found["alt"], found["path"]
    shown = ((path, "light"), (f"{path}-dark", "dark"))
    return "".join(f"[![{alt}]({file}.webp#only-{theme}){{ loading=lazy }}]({file}.webp)" for file, theme in shown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001  # as above
    """The page with a name for the search, which the theme forgot. One that loads from another server is refused."""
    found = FOREIGN.search(output)
    if found is not None:
        raise PluginError(f"{page.file.src_uri} loads {found['address']}: the site works without a network")
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def _with_title(found: re.Match[str]) -> str:
    """The start of a fenced block without the marks that the tests read, but for the title."""
    title = re.search(r"title=(\S+)", found["marks"])
    return f"```{found['language']}" + (f' title="{title[1]}"' if title else "")


def _without_outside_links(markdown: str, path: str) -> str:
    """The page with links to files of the repository that are no part of the site as text."""

    def replaced(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), found["path"]))
        return f"{found['text']} (`{target.removeprefix('../')}`)" if target.startswith("../") else found[0]

    return LINK.sub(replaced, markdown)
