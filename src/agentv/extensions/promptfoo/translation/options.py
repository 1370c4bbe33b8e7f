"""`options` of promptfoo's tests and of `defaultTest`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar, is_empty
from agentv.extensions.promptfoo.translation.providers.targets import judge_of
from agentv.extensions.promptfoo.translation.source import FILE, Source, mapping, text_node
from agentv.extensions.promptfoo.translation.tables import OPTIONS_INSTEAD, UNREAD
from agentv.extensions.promptfoo.translation.transforms import transform_of
from agentv.templating import RenderError, undeclared

AROUND = frozenset({"prefix", "suffix"})
"""Options that stand around the prompt."""

_OTHER_PROVIDERS = frozenset({"classification", "embedding", "moderation"})
_JUDGE_READS = frozenset({"output", "rubric", "vars", "env"})
_RUBRIC = re.compile(r"(\{\{-?\s*)rubric(\s*(?:\|[^}]*)?-?\}\})")


def is_option(key: str) -> bool:
    """Whether a key of `options` means something to promptfoo itself; all others are settings of models."""
    return key in _CONVERTED or key in AROUND or key in UNREAD or key in OPTIONS_INSTEAD


def options_of(node: Node, source: Source, passed_over: frozenset[str] = frozenset()) -> dict[str, Node]:
    """The keys of a case that its options become. What has no equivalent is reported.

    Args:
        node: the value of `options`.
        source: gets what has no equivalent.
        passed_over: options that are seen to elsewhere.
    """
    if is_empty(node):
        return {}
    if not isinstance(node, MapNode):
        source.tell(node, "'options' is not a mapping")
        return {}
    made: dict[str, Node] = {}
    kept: dict[str, Node] = {}
    for key, item in node.items.items():
        convert = _CONVERTED.get(key)
        if key in passed_over:
            continue
        if key in UNREAD:
            source.note(node.keys[key], f"the option '{key}' is omitted: {UNREAD[key]}")
        elif convert is None and key not in OPTIONS_INSTEAD and source.asks_no_model:
            source.note(node.keys[key], f"the option '{key}' is omitted: it is a setting of models, and none is asked")
        elif convert is None:
            hint = OPTIONS_INSTEAD.get(key, "promptfoo sends it with the call: write it in 'config' of the providers")
            source.tell(node.keys[key], f"the option '{key}' has no equivalent", hint)
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
        source.note(node, "the option 'provider' is omitted: it names none, and promptfoo takes its own")
        return {}, {}
    if isinstance(node, MapNode) and not node.items.keys() & {"id", "text"}:
        hint = "name a target that computes embeddings, under 'embedder' of the assertion"
        source.tell(node, "a provider of embeddings for all assertions has no equivalent", hint)
    return {}, {"provider": node}


def _transform(node: Node, source: Source) -> Converted:
    made = transform_of(node, source)
    return {}, {"transform": node if made is None else made}


def _rubric_prompt(node: Node, source: Source) -> Converted:
    made = judge_prompt_of(node, source)
    return {}, {"rubricPrompt": node} if made is None else {"prompt": made}


def _repeat(node: Node, source: Source) -> Converted:
    del source
    return {"repeat": node}, {}


def _without_defaults(node: Node, source: Source) -> Converted:
    del source
    return ({"skip_defaults": node}, {}) if isinstance(node, Scalar) and node.value is True else ({}, {})


def _expansion(node: Node, source: Source) -> Converted:
    """A list stands for as many cases unless this is true."""
    del source
    off = isinstance(node, Scalar) and node.value is True
    return ({"expand": Scalar(False, "false", node.at)}, {}) if off else ({}, {})


_CONVERTED: Mapping[str, Callable[[Node, Source], Converted]] = {
    "provider": _provider,
    "transform": _transform,
    "postprocess": _transform,
    "rubricPrompt": _rubric_prompt,
    "repeat": _repeat,
    "disableDefaultAsserts": _without_defaults,
    "disableVarExpansion": _expansion,
}


def judge_prompt_of(node: Node, source: Source) -> Node | None:
    """A judge prompt by our names of variables; None where it has no equivalent, which is reported.

    Messages become one text: a judge of ours gets one prompt.
    """
    if isinstance(node, Scalar) and isinstance(node.value, str) and node.value.startswith(FILE):
        found = None if source.is_code(node.value) else source.content(node)
        if found is None:
            hint = "write the prompt under 'prompt', with {{ output }} and {{ rubrics }}"
            source.tell(node, f"the judge prompt '{node.text}' cannot be converted", hint)
            return None
        node = found
    text = _text_of(node)
    if text is None:
        source.tell(node, "this judge prompt is neither text nor a list of messages")
        return None
    text = _RUBRIC.sub(r"\1rubrics\2", text)
    try:
        others = sorted(undeclared(text) - _JUDGE_READS - {"rubrics"})
    except RenderError as error:
        source.tell(node, f"this judge prompt is not a valid Jinja template: {error.message}")
        return None
    for name in others:
        text = re.sub(rf"(\{{\{{-?\s*){re.escape(name)}\b", rf"\1vars.{name}", text)
    return text_node(text, node.at)


def _text_of(node: Node) -> str | None:
    """The text of a prompt, which may be messages, also as JSON."""
    if isinstance(node, Scalar):
        try:
            found = json.loads(node.text) if node.text.lstrip().startswith("[") else None
        except ValueError:
            found = None
        lines = [one.get("content") for one in found if isinstance(one, dict)] if isinstance(found, list) else None
        return _joined(lines) if lines is not None else node.text
    contents = [
        one.get("content") if isinstance(one, MapNode) else one
        for one in (node.items if isinstance(node, ListNode) else [])
    ]
    return _joined([one.text if isinstance(one, Scalar) else None for one in contents])


def _joined(lines: list[str | None]) -> str | None:
    texts = [line for line in lines if isinstance(line, str)]
    return "\n\n".join(texts) if texts and len(texts) == len(lines) else None
