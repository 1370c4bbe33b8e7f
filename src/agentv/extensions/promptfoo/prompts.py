"""Converts promptfoo's prompts, with content blocks and pictures in messages."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from glob import has_magic
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct, field

from agentv.authoring.source.files import climbs, is_file, literal_part
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, plain
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.promptfoo.code import names_code
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    chat,
    list_items,
    mapping,
    mapping_items,
    text_in,
    text_node,
    value_at,
)
from agentv.templating import has_placeholder

_SUFFIXES = frozenset([".jpg", ".jpeg", ".png", ".gif", ".webp"])
_WHOLE = re.compile(r"(?:data:image/[\w.+-]+;base64,)?\{\{\s*(\w+)\s*\}\}")
_PLACEHOLDER = re.compile(r"\{[{%](.*?)[%}]\}", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")


def picture_variables(root: MapNode) -> frozenset[str]:
    """The variables that are picture files in every test that sets them, and that assertions and options do not use."""
    given = [root.get("defaultTest"), *list_items(root.get("tests"))]
    if any(isinstance(one, Scalar) for one in given) or "scenarios" in root.items:
        return frozenset()  # tests in other files may set them to anything
    pictures: set[str] = set()
    others: set[str] = set()
    for test in given:
        for name, item in mapping_items(value_at(test, "vars")).items():
            path = text_in(item).strip()
            is_picture = path.startswith(FILE) and PurePosixPath(path).suffix.lower() in _SUFFIXES
            (pictures if is_picture else others).add(name)
        for reads in (value_at(test, key) for key in ("assert", "options")):
            others |= set() if reads is None else set(_names_in_text(reads))
    return frozenset(pictures - others)


def picture_placeholder(node: Node | None, pictures: frozenset[str]) -> str | None:
    """The placeholder of a picture, if the text consists of nothing else, or None."""
    found = _WHOLE.fullmatch(node.text.strip()) if isinstance(node, Scalar) else None
    return f"{{{{ {found[1]} }}}}" if found is not None and found[1] in pictures else None


def only_in_blocks(pictures: frozenset[str], prompts: Iterable[Node]) -> frozenset[str]:
    """The picture variables that no prompt shows as text."""
    return pictures - {name for prompt in prompts for name in _names_in_text(prompt)}


def _names_in_text(node: Node) -> Iterator[str]:
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _names_in_text(item)
    elif isinstance(node, MapNode):
        if text_in(node.get("type")) != "image":
            for item in node.items.values():
                yield from _names_in_text(item)
    elif isinstance(node.value, str):
        for part in _PLACEHOLDER.findall(node.value):
            yield from _NAME.findall(part)
        if "vars" in node.value:  # code may read any name in it
            yield from _NAME.findall(node.value)


_TEXTS = frozenset({"text", "input_text"})
_IMAGES = frozenset({"image_url", "input_image"})


def messages_in(node: Node, source: Source) -> Node:
    """The messages with content blocks in our form. A block without an equivalent is kept and reported."""
    if isinstance(node, ListNode):
        return ListNode([messages_in(item, source) for item in node.items], node.at)
    content = node.get("content") if isinstance(node, MapNode) else None
    if not isinstance(node, MapNode) or not isinstance(content, ListNode):
        return node
    blocks: list[Node] = [_block(item, source) for item in content.items]
    return mapping(node, {**node.items, "content": ListNode(blocks, content.at)})


def _block(node: Node, source: Source) -> Node:
    if not isinstance(node, MapNode):
        return node
    kind = node.get("type")
    name = kind.text if isinstance(kind, Scalar) else "text" if node.items.keys() == {"text"} else ""
    value = node.get("text") if name in _TEXTS else _picture(name, node, source)
    if value is None:
        if "value" not in node.items:
            source.error(node, f"a '{name}' block of a message has no equivalent", "agentv has text, image and file")
        return node
    at = kind.at if kind is not None else node.at
    return mapping(node, {"type": text_node("text" if name in _TEXTS else "image", at), "value": value})


def _picture(kind: str, node: MapNode, source: Source) -> Node | None:
    """The URL of a picture, a data URL with its content, or the placeholder of the variable with its path."""
    if kind in _IMAGES:
        image = node.get("image_url")
        address = image.get("url") if isinstance(image, MapNode) else image
        shown = picture_placeholder(address, source.pictures)
        return address if shown is None or address is None else text_node(shown, address.at)
    return _embedded_picture(node, source) if kind in ("", "image") else None


def _embedded_picture(node: MapNode, source: Source) -> Node | None:
    """Convert Anthropic's `{type: image, source: …}` and Amazon's `{image: {format: …, source: {bytes: …}}}`."""
    inner = node.get("image")
    given = inner.get("source") if isinstance(inner, MapNode) else node.get("source")
    if not isinstance(given, MapNode):
        return None
    data, media = given.get("data") or given.get("bytes"), given.get("media_type")
    shown = picture_placeholder(data, source.pictures)
    if shown is not None and data is not None:
        return text_node(shown, data.at)
    if isinstance(data, Scalar) and isinstance(media, Scalar):
        return text_node(f"data:{media.text};base64,{data.text}", data.at)
    return given.get("url")


_SEPARATOR = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)
_DUMPED = re.compile(r"(?<=[:,\[])\s*\{\{-?\s*([\w.]+)\s*\|\s*dump(?:\(\))?(?:\s*\|\s*safe)?\s*-?\}\}")
"""A JSON value that is a variable with Nunjucks' `dump` filter."""

_PARTIAL = re.compile(r"(?!.*\{%\s*(?:end)?raw\s*%\})(?:\{%[^%]*$|\{\{[^}]*$|\{#[^#]*$)", re.MULTILINE)
"""A placeholder that is not closed on its line: promptfoo sends such a prompt without rendering it."""

_KEPT = (".txt", ".md", ".j2")
_DATA = (".json", ".yaml", ".yml")
_SERVICES = ("langfuse://", "portkey://", "helicone://")
_TEXT_KEYS = ("raw", "prompt", "file", "id")


class Prompt(Struct, frozen=True):
    """One prompt.

    Attributes:
        content: text or messages, with placeholders.
        label: its name, if it has one.
        file: the path or function to which the suite can refer for it; None for part of a file.
    """

    content: Node
    label: Scalar | None = None
    file: Scalar | None = None


class Prompts(Struct, frozen=True):
    """The prompts of a configuration.

    Attributes:
        single: the only prompt, if it is written as `input`; None if the suite lists prompts, or if none exist.
        head: keys of the suite that list the prompts; empty if `single` is set.
        found: all prompts.
    """

    single: Node | None = None
    head: Mapping[str, Node] = field(default_factory=dict)
    found: tuple[Prompt, ...] = ()


def prompts_of(
    node: Node | None, source: Source, root: MapNode, form: Literal["inline", "listed"] | None = None
) -> Prompts:
    """Convert `prompts`.

    Args:
        node: the value of `prompts`.
        source: reads files, and reports what has no equivalent.
        root: the configuration.
        form: `inline` to write a single prompt as `input` even if it is a file's text; `listed` to write it under
            `prompts`.
    """
    every = _prompts(node, source) if node is not None else ()
    found = tuple({_identity(one): one for one in every}.values())  # promptfoo sends no prompt twice
    if not found:
        source.error(node or root, "there are no prompts", "add 'input' to every case")
        return Prompts()
    first = found[0]
    is_text = first.file is None or (form == "inline" and not names_code(first.file.text))
    if len(found) == 1 and first.label is None and form != "listed" and is_text:
        return Prompts(first.content, found=found)
    entries: list[Node] = []
    taken: Counter[str] = Counter()
    for one in found:
        content, label = one.file or one.content, one.label
        if label is None:
            entries.append(content)
            continue
        taken[label.text] += 1  # labels must be unique
        if taken[label.text] > 1:
            label = text_node(f"{label.text}-{taken[label.text]}", label.at)
        entries.append(mapping(content, {"label": label, "prompt": content}))
    return Prompts(head={"prompts": ListNode(entries, (node or root).at)}, found=found)


def _identity(prompt: Prompt) -> tuple[str, ...]:
    names = (prompt.label, prompt.file)
    return json.dumps(plain(prompt.content), default=str), *(one.text if one is not None else "" for one in names)


def _prompts(node: Node, source: Source, label: Scalar | None = None) -> Iterator[Prompt]:
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _prompts(item, source)
    elif isinstance(node, MapNode):
        yield from _labelled(node, source)
    elif node.text.startswith((*_SERVICES, "exec:")):
        kind = node.text.partition(":")[0]
        source.error(node, f"a prompt of '{kind}' has no equivalent", "write its text, with placeholders")
        yield Prompt(node, label)
    elif _names_file(node, source):
        yield from _in_files(node, source, label)
    else:
        yield Prompt(content_of(node, source), label)


def _labelled(node: MapNode, source: Source) -> Iterator[Prompt]:
    key = next((key for key in _TEXT_KEYS if isinstance(node.get(key), Scalar)), None)
    text = node.get(key) if key is not None else None
    if not isinstance(text, Scalar):  # {path: label}
        for path, name in node.items.items():
            yield from _prompts(text_node(path, node.keys[path]), source, name if isinstance(name, Scalar) else None)
        return
    label = node.get("label") or node.get("display") or (node.get("id") if key != "id" else None)
    for other in node.items.keys() - {*_TEXT_KEYS, "label", "display"}:
        source.error(node.keys[other], f"'{other}' of a prompt has no equivalent", _INSTEAD.get(other))
    yield from _prompts(text, source, label if isinstance(label, Scalar) else None)


_INSTEAD = {
    "config": "write the settings in the target",
    "provider": "write a suite for each prompt",
    "function": "write its text, with placeholders",
}


def _names_file(node: Scalar, source: Source) -> bool:
    text = node.text.strip()
    if text.startswith(FILE) or ("\n" not in text and is_file(str(source.directory / text))):
        return True
    if not has_magic(text) or "{{" in text or " " in text:
        return False
    if source.points_outside(text):
        return bool(literal_part(text)) or climbs(text)  # `/help?` is a prompt, `../*.txt` is refused
    return bool(source.matched(node))


def _in_files(node: Scalar, source: Source, label: Scalar | None) -> Iterator[Prompt]:
    text = node.text.strip()
    if names_code(text):
        path, _, function = text.removeprefix(FILE).partition(":")
        if path.endswith(".py") and not function:
            source.error(
                node, f"'{path}' prints its prompt", "write a function that returns it, and name it: file.py:name"
            )
            yield Prompt(node, label)
        elif source.admits(path, node):
            yield Prompt(node, label, text_node(text.removeprefix(FILE), node.at))
        return
    paths = source.matched(node)
    for path in [text.removeprefix(FILE)] if paths == [] else paths or []:
        yield from _in_file(path, node, source, label)


def _in_file(path: str, node: Scalar, source: Source, label: Scalar | None) -> Iterator[Prompt]:
    content = source.content(text_node(path, node.at))
    if content is None:
        yield Prompt(node, label)
        return
    parts = _SEPARATOR.split(content.text) if path.endswith(".txt") else [content.text]
    texts = [part.strip() for part in parts if part.strip()] or [""]
    whole = len(texts) == 1 and source.boundary.holds(str(source.directory / path))
    for text in texts:
        written = _as_json(text, content.at) if path.endswith(_DATA) else text_node(text, content.at)
        made = content_of(written, source)
        kept = whole and _is_read_alike(path, text, made)
        yield Prompt(made, label, text_node(f"{FILE}{path}", node.at) if kept else None)


def _is_read_alike(path: str, text: str, made: Node) -> bool:
    """Whether agentv reads the same prompt from the file."""
    if path.endswith(_KEPT):
        return isinstance(made, Scalar) and made.text == text
    if not path.endswith(_DATA) or not isinstance(made, ListNode):
        return False
    own = Report()
    found = read_yaml("", text.encode(), own).value
    return not own.failed and found is not None and plain(found) == plain(made)


def _as_json(text: str, at: Place) -> Scalar:
    """The prompt that promptfoo reads from a YAML or JSON file: a list or mapping as JSON, else the text itself."""
    own = Report()
    found = read_yaml("", text.encode(), own).value
    if own.failed or found is None or isinstance(found, Scalar):
        return text_node(text, at)
    return text_node(json.dumps(plain(found), ensure_ascii=False, default=str), at)


def content_of(node: Node, source: Source) -> Node:
    """A prompt as an `input`: text, or messages if it is written as a list of them and a model is called."""
    if not isinstance(node, Scalar):
        return node
    found = None if source.calls_no_model else chat(_DUMPED.sub(r'"{{ \1 }}"', node.text), node.at)
    if found is not None:
        if source.calls_programs:
            hint = "run them apart: write a configuration for each"
            source.error(node, "a prompt of messages for a model and for a program has no equivalent", hint)
        return messages_in(found, source)
    text = f"{{% raw %}}{node.text}{{% endraw %}}" if _PARTIAL.search(node.text) else node.text
    try:
        data = json.loads(node.text)
    except ValueError:
        return text_node(text, node.at)
    return text_node(_rendered_json(data) if isinstance(data, dict | list) else text, node.at)


def _rendered_json(data: Any) -> str:
    """A template of JSON whose strings are rendered one by one, as in promptfoo, so that values cannot break it."""
    texts: list[str] = []

    def expression(value: Any) -> str:
        if isinstance(value, dict):
            return f"{{{', '.join(f'{json.dumps(key)}: {expression(one)}' for key, one in value.items())}}}"
        if isinstance(value, list):
            return f"[{', '.join(map(expression, value))}]"
        if not isinstance(value, str) or not has_placeholder(value):
            return json.dumps(value, ensure_ascii=False)
        texts.append(value)
        return f"text_{len(texts)}"

    written = expression(data)
    sets = (f"{{% set text_{number} %}}{text}{{% endset %}}" for number, text in enumerate(texts, 1))
    return f"{''.join(sets)}{{{{ {written} | dump(2) }}}}"
