"""`meta.yaml`: what a prompt says of itself (SPEC section 11)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from agentv.authoring.fields.decode import INVALID, shape_of
from agentv.authoring.fields.json_kinds import TEXT, Schema, properties_of
from agentv.authoring.fields.reading import Reading
from agentv.authoring.fields.schema import Unread
from agentv.authoring.fields.tags import read_tags
from agentv.authoring.prompt_library.files import META
from agentv.authoring.source.files import shown
from agentv.authoring.source.nearest import nearest
from agentv.authoring.source.nodes import MapNode, Node, Scalar, kind_of, plain, span_of
from agentv.authoring.source.yaml import read_yaml
from agentv.model.suite.exam import LONGEST_DESCRIPTION, STATUSES, PromptMeta, PromptStatus
from agentv.model.values.span import Span
from agentv.model.values.values import EMPTY
from agentv.registry.fields import Declared, Doc, Nonempty, Text, Verbatim

_NOT_IN_IDS = "/\\"


@dataclass(frozen=True, slots=True)
class AuthoredMeta(Declared):
    """The outermost mapping of `meta.yaml`. Other keys are free."""

    id: Annotated[Text | None, Nonempty(), Doc("id of the prompt in commands; default: the directory name")] = None
    description: Annotated[
        Text | None, Nonempty(), Doc("when to use the prompt; a system loads the prompt based on this text alone")
    ] = None
    status: Annotated[PromptStatus, Verbatim(), Doc("status of the prompt; `agentv prompt promote` sets it")] = "draft"
    owner: Annotated[Text | None, Nonempty(), Doc("person or team that is responsible for the prompt")] = None
    tags: Annotated[Unread, Doc("labels")] = None


def read_meta(directory: str, reading: Reading) -> PromptMeta:
    """The content of a prompt's `meta.yaml`; invalid parts are reported and left out.

    Args:
        directory: the prompt's, absolute.
        reading: provides the report and the reader; placeholders in the file are plain text.
    """
    default = PromptMeta(os.path.basename(directory.rstrip(os.sep)))  # noqa: PTH119  # a thousand times in a listing
    path = os.path.join(directory, META)  # noqa: PTH118  # as above
    try:
        data = reading.reader.read(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.islink(path):  # noqa: PTH114  # as above
            return default
        reason = f"cannot read '{shown(path)}': {error.strerror}"
        reading.report.error("missing-file", Span(path, 1, 1, 1, 2), reason)
        return PromptMeta(default.id, path)
    root = read_yaml(path, data, reading.report).value
    if isinstance(root, MapNode):
        return _meta(root, PromptMeta(default.id, path), reading.rendering(False))
    if root is not None and not (isinstance(root, Scalar) and root.value is None):
        reading.report.error("bad-value", root, f"{META} must be a mapping, found {kind_of(root)}")
    return PromptMeta(default.id, path)


def _meta(root: MapNode, default: PromptMeta, reading: Reading) -> PromptMeta:
    rules = shape_of(AuthoredMeta).rules
    values: dict[str, Any] = {}
    for key, node in root.items.items():
        rule = rules.get(key)
        if rule is not None and not rule.unread and not _is_blank(key, node):
            value = rule.kind.read(node, reading, key)
            if value is not INVALID:
                values[key] = value.strip()
    _warn_of_misspelt(root, rules, reading)
    return PromptMeta(
        id=_id(values.get("id"), root, reading) or default.id,
        path=default.path,
        description=_description(values.get("description"), root, reading),
        status=values.get("status", "draft"),
        owner=values.get("owner"),
        tags=read_tags(root.get("tags"), reading),
        others={key: plain(node) for key, node in root.items.items() if key not in rules} or EMPTY,
        places={key: _place(key, root) for key in root.items},
    )


def _is_blank(key: str, node: Node) -> bool:
    """Whether a key is left blank, as in a form to be filled in; a description must say something."""
    return key != "description" and isinstance(node, Scalar) and node.value is None


def _description(text: str | None, root: MapNode, reading: Reading) -> str | None:
    if text is not None and len(text) > LONGEST_DESCRIPTION:
        message = f"this description has {len(text):,} characters; the maximum is {LONGEST_DESCRIPTION:,}"
        hint = "systems that load prompts by description show no more"
        reading.report.error("bad-value", root.items["description"], message, hint=hint)
    return text


def _id(text: str | None, root: MapNode, reading: Reading) -> str | None:
    """An id that a command line can name without its being taken for a path or a flag."""
    if text is None:
        return None
    if text.isprintable() and not text.startswith("-") and not any(one in text for one in _NOT_IN_IDS):
        return text
    message = "an id is one line without '/' and '\\' that does not start with '-', so that commands can take it"
    reading.report.error("bad-value", root.items["id"], message)
    return None


def _warn_of_misspelt(root: MapNode, known: Mapping[str, object], reading: Reading) -> None:
    """Warn of a key that is nearly a known one which is missing. Any other key is free."""
    for key in root.items:
        if key in known or key.startswith("x-"):
            continue
        near = nearest(key, [one for one in known if one not in root.items])
        if near is not None:
            message = f"unknown key '{key}' in {META}"
            reading.report.warning("unknown-key", root.keys[key], message, hint=f"did you mean '{near}'?")


def _place(key: str, root: MapNode) -> Span:
    """The position of a value, or of its key if the value is an alias, whose text is elsewhere."""
    value, at = span_of(root.items[key].at), span_of(root.keys[key])
    return value if (value.line, value.column) >= (at.end_line, at.end_column) else at


def meta_schema() -> Schema:
    """The JSON Schema of the file, without its head."""
    tags: Schema = {"anyOf": [{"type": ["string", "null"]}, {"type": "array"}, {"type": "object"}]}
    properties = properties_of(AuthoredMeta, {"tags": tags})
    properties["description"] |= {**TEXT, "maxLength": LONGEST_DESCRIPTION}
    properties["status"] |= {"enum": [*STATUSES, None]}
    return {"type": "object", "properties": properties}
