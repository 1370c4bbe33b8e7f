"""Converts options and variables of promptfoo's tests, with the files and other variables that they name."""

from __future__ import annotations

import base64
import json
import mimetypes
import re
from collections.abc import Callable, Mapping
from glob import has_magic
from pathlib import Path, PurePosixPath

from msgspec.structs import replace

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty, plain, span_of
from agentv.authoring.source.report import Report
from agentv.authoring.source.yaml import read_yaml
from agentv.extensions.promptfoo.code import computed_variable, transform_of
from agentv.extensions.promptfoo.source import FILE, Source, items_of, list_items, mapping, text_node, whole_number
from agentv.extensions.promptfoo.tables import OPTIONS_INSTEAD, UNUSED_OPTIONS
from agentv.extensions.promptfoo.targets import judge_of
from agentv.templating import Language, RenderError, Scope, has_placeholder, render_text, undeclared

AFFIXES = frozenset({"prefix", "suffix"})
"""Options with text to put before and after the prompt."""

_OTHER_PROVIDERS = frozenset({"classification", "embedding", "moderation"})
_JUDGE_READS = frozenset({"output", "rubric", "vars", "env"})
_RUBRIC = re.compile(r"(\{\{-?\s*)rubric(\s*(?:\|[^}]*)?-?\}\})")


def is_option(key: str) -> bool:
    """Whether promptfoo itself reads a key of `options`. Other keys are settings of models."""
    return key in _CONVERTED or key in AFFIXES or key in UNUSED_OPTIONS or key in OPTIONS_INSTEAD


def options_of(node: Node, source: Source, skipped: frozenset[str] = frozenset()) -> dict[str, Node]:
    """The keys of a case for the options of a test.

    Args:
        node: the value of `options`.
        source: reports what has no equivalent.
        skipped: options that are converted elsewhere.
    """
    if is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        source.error(node, "'options' is not a mapping")
        return {}
    made: dict[str, Node] = {}
    kept: dict[str, Node] = {}
    for key, item in node.items.items():
        convert = _CONVERTED.get(key)
        if key in skipped:
            continue
        if key in UNUSED_OPTIONS:
            source.remark(node.keys[key], f"the option '{key}' is omitted: {UNUSED_OPTIONS[key]}")
        elif convert is None and key not in OPTIONS_INSTEAD and source.calls_no_model:
            source.remark(
                node.keys[key], f"the option '{key}' is omitted: it is a setting of models, and none is asked"
            )
        elif convert is None:
            hint = OPTIONS_INSTEAD.get(key, "promptfoo sends it with the call: write it in 'config' of the providers")
            source.error(node.keys[key], f"the option '{key}' has no equivalent", hint)
        else:
            own, inside = convert(item, source)
            made |= own
            kept |= inside
    return {**made, "options": mapping(node, kept)} if kept else made


Converted = tuple[dict[str, Node], dict[str, Node]]
"""Keys of the case, and keys of its `options`."""


def _provider(node: Node, source: Source) -> Converted:
    judge = judge_of(node, source)
    if judge is not None:
        return {"judge": judge}, {}
    if isinstance(node, MapNode) and not node.items.keys() & {"id", "text", *_OTHER_PROVIDERS}:
        source.remark(node, "the option 'provider' is omitted: it names none, and promptfoo takes its own")
        return {}, {}
    if isinstance(node, MapNode) and not node.items.keys() & {"id", "text"}:
        hint = "name a target that computes embeddings, under 'embedder' of the assertion"
        source.error(node, "a provider of embeddings for all assertions has no equivalent", hint)
    return {}, {"provider": node}


def _transform(node: Node, source: Source) -> Converted:
    made = transform_of(node, source)
    return {}, {"transform": node if made is None else made}


def _rubric_prompt(node: Node, source: Source) -> Converted:
    made = judge_prompt_of(node, source)
    return {}, {"rubricPrompt": node} if made is None else {"prompt": made}


def _is_true(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is True


_CONVERTED: Mapping[str, Callable[[Node, Source], Converted]] = {
    "provider": _provider,
    "transform": _transform,
    "postprocess": _transform,
    "rubricPrompt": _rubric_prompt,
    "repeat": lambda node, _: ({"repeat": node}, {}),
    "disableDefaultAsserts": lambda node, _: ({"skip_defaults": node} if _is_true(node) else {}, {}),
    # lists expand to one case per item unless this is true
    "disableVarExpansion": lambda node, _: ({"expand": Scalar(False, "false", node.at)} if _is_true(node) else {}, {}),
}


def judge_prompt_of(node: Node, source: Source) -> Node | None:
    """The judge prompt with our names of variables, or None if it has no equivalent, which is reported.

    Messages are joined, because our judges get one text.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.startswith(FILE):
        found = None if source.is_code(node.value) else source.content(node)
        if found is None:
            hint = "write the prompt under 'prompt', with {{ output }} and {{ rubrics }}"
            source.error(node, f"the judge prompt '{node.text}' cannot be converted", hint)
            return None
        node = found
    text = _text_of(node)
    if text is None:
        source.error(node, "this judge prompt is neither text nor a list of messages")
        return None
    text = _RUBRIC.sub(r"\1rubrics\2", text)
    try:
        others = sorted(undeclared(text) - _JUDGE_READS - {"rubrics"})
    except RenderError as error:
        source.error(node, f"this judge prompt is not a valid Jinja template: {error.message}")
        return None
    for name in others:
        text = re.sub(rf"(\{{\{{-?\s*){re.escape(name)}\b", rf"\1vars.{name}", text)
    return text_node(text, node.at)


def _text_of(node: Node) -> str | None:
    """The text of a prompt, or of its messages, which may be JSON; None if some message has no text."""
    if isinstance(node, Scalar):
        try:
            found = json.loads(node.text) if node.text.lstrip().startswith("[") else None
        except ValueError:
            found = None
        lines = [one.get("content") for one in found if isinstance(one, dict)] if isinstance(found, list) else None
        return _joined(lines) if lines is not None else node.text
    contents = [one.get("content") if isinstance(one, MapNode) else one for one in list_items(node)]
    return _joined([one.text if isinstance(one, Scalar) else None for one in contents])


def _joined(lines: list[str | None]) -> str | None:
    texts = [line for line in lines if isinstance(line, str)]
    return "\n\n".join(texts) if texts and len(texts) == len(lines) else None


_NAME = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_PICTURES = frozenset({".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp", ".svg"})
_VIDEOS = frozenset({".mp4", ".webm", ".ogg", ".mov", ".avi", ".wmv", ".mkv", ".m4v"})
_BINARY = _PICTURES | _VIDEOS | {".mp3", ".wav", ".pdf"}
_DEEPEST = 5
"""Maximum number of times that promptfoo substitutes variables in a variable."""


def variables(node: Node, source: Source, defaults: Mapping[str, Node], *, expands: bool = True) -> dict[str, Node]:
    """The keys `vars` and, if some list expands to one case per item, `expand`.

    Args:
        node: the value of `vars`.
        source: reads files, and reports what has no equivalent.
        defaults: the variables of `defaultTest`, which others may name.
        expands: whether a list of texts expands to one case per item.
    """
    if isinstance(node, Scalar | ListNode) and not is_empty(node):
        node = _merged(node, source) or node
    if is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        source.error(node, "'vars' is not a mapping", "write the variables here")
        return {"vars": node}
    known = {**defaults, **node.items}
    read = {key: _variable(key, item, known, source) for key, item in node.items.items()}
    found = {key: item for key, item in read.items() if item is not None}
    expanded = any(map(_is_expanded, found.values()))
    if expands and (expanded or any(isinstance(item, ListNode) for item in defaults.values())):
        for key, item in found.items():
            if isinstance(item, ListNode) and not _is_expanded(item):
                found[key] = ListNode([item], item.at)  # a single-item list, so that this list stays one value
    made: dict[str, Node] = {"vars": mapping(node, found)}
    if expanded:
        made["expand"] = Scalar(True, "true", node.at)
    return made


def _is_expanded(node: Node) -> bool:
    """Whether a list expands to one case per item: in promptfoo, if its first item is text."""
    first = node.items[0] if isinstance(node, ListNode) and node.items else None
    return isinstance(first, Scalar) and isinstance(first.value, str)


def _merged(node: Scalar | ListNode, source: Source) -> MapNode | None:
    """The variables of the named files, or None if one of them has no mapping."""
    made = MapNode({}, {}, node.at)
    beside = span_of(node.at).file  # these paths are relative to the file that names them
    source = replace(source, directory=Path(beside).parent) if beside else source
    for one in items_of(node):
        if not isinstance(one, Scalar):
            return None
        paths = source.matched(one) or [one.text] if has_magic(one.text) else [one.text]
        for path in paths:
            found = source.document(path, one)
            if not isinstance(found, MapNode):
                return None
            made = MapNode({**made.items, **found.items}, {**made.keys, **found.keys}, node.at)
    return made


def _variable(key: str, node: Node, known: Mapping[str, Node], source: Source) -> Node | None:
    """The value of a variable, or None after reporting why it has none."""
    if isinstance(node, ListNode) and _is_expanded(node):
        items = [_variable(key, item, known, source) for item in node.items]
        return ListNode([one for item in items for one in items_of(item)], node.at)
    if isinstance(node, Scalar) and isinstance(node.value, str):
        text = node.value
        if source.is_code(text) and not text.endswith(".rb"):
            return computed_variable(key, node, {name: plain(item) for name, item in known.items()}, source)
        if source.is_code(text) or text.startswith("package:"):
            source.error(node, f"the variable '{key}' is computed by '{node.text}'", "write its value")
            return None
        if text.startswith(FILE):
            return _path_of(node, source) if key in source.pictures else _file_value(node, source)
        cut = text.removesuffix("\n")  # as promptfoo does
        node = node if cut == text else text_node(cut, node.at)
        return _filled(node, known, source) if has_placeholder(cut) else node
    unset = isinstance(node, Scalar) and node.value is None  # promptfoo renders it as empty text
    return text_node("", node.at) if unset else whole_number(node)


def _path_of(node: Scalar, source: Source) -> Node | None:
    """The path of a picture, for a content block of the prompt, or None if it cannot be read, which is reported."""
    path = node.value.removeprefix(FILE).strip()
    return text_node(path, node.at) if source.admits(path, node) else None


def _file_value(node: Scalar, source: Source) -> Node | None:
    path = node.value.removeprefix(FILE).strip()
    if has_magic(path) and "\n" not in path:
        matched = source.matched(node)
        if matched == []:
            source.error(node, f"no file matches '{path}'", "fix the path")
        items = [_file_value(text_node(f"{FILE}{one}", node.at), source) for one in matched or ()]
        return ListNode([item for item in items if item is not None], node.at)
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _BINARY and suffix != ".pdf" and source.calls_no_model and source.admits(path, node):
        data = base64.b64encode(source.reading.reader.read(str(source.directory / path))).decode()
        kind = mimetypes.guess_type(path)[0] or ""
        return text_node(f"data:{kind};base64,{data}" if kind.startswith("image/") else data, node.at)
    if suffix in _BINARY:
        hint = "name the file in the prompt: a block {type: image, value: PATH} or {type: file, value: PATH}"
        source.error(node, f"a variable cannot hold the file '{path}'", hint)
        return None
    content = source.content(node)
    if content is None:
        return None
    if suffix in (".yaml", ".yml"):
        own = Report()
        found = read_yaml("", content.text.encode(), own).value
        if found is not None and not own.failed:
            return text_node(json.dumps(plain(found), ensure_ascii=False, separators=(",", ":")), content.at)
    return text_node(content.text.strip(), content.at)


def _filled(node: Scalar, known: Mapping[str, Node], source: Source) -> Node:
    """The text with other variables substituted, as in promptfoo before it renders a prompt."""
    text = node.value
    for _ in range(_DEEPEST):
        filled = _NAME.sub(lambda found: _substituted(found, known), text)
        if filled == text:
            break
        text = filled
    if has_placeholder(text):
        text = _rendered(text, known, node, source)
    return text_node(text, node.at)


def _rendered(text: str, known: Mapping[str, Node], node: Scalar, source: Source) -> str:
    """The text, rendered only if all variables that it uses are set, as in promptfoo."""
    language = Language(nunjucks=True, missing_empty=True)
    try:
        names = undeclared(text, language) - {"env"}
        if not names <= known.keys():
            return text
        if any(_is_expanded(known[name]) for name in names):
            hint = "write the resulting values"
            source.error(node, "a variable that contains another one with a list of values has no equivalent", hint)
            return text
        values = {name: plain(known[name]) for name in names}
        return render_text(text, Scope(values, source.reading.scope.env, language=language))
    except RenderError as error:
        source.report.error(error.code, node, error.message)
        return text


def _substituted(found: re.Match[str], known: Mapping[str, Node]) -> str:
    other = known.get(found[1])
    if not isinstance(other, Scalar) or other.text.startswith(FILE):
        return found[0]
    return other.text
