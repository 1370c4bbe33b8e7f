"""Settings of promptfoo's providers by our names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentv.authoring.fields.agentv.names import SETTINGS
from agentv.authoring.source.nodes import MapNode, Node, Place, Scalar
from agentv.extensions.promptfoo.translation.providers.provider_tables import RETRIES, UNUSED_SETTINGS
from agentv.extensions.promptfoo.translation.source import FILE, Source, items_of, mapping, text_node

_NESTED = frozenset({"generationConfig", "inferenceConfig", "inferenceConfiguration", "textGenerationConfig"})
"""Settings that hold others."""

_TOGETHER = frozenset({"extra", "headers"})
"""Settings of ours that several of theirs become."""

_THINKING = "showThinking"


def of_model(settings: Mapping[str, Node], source: Source, keys: Mapping[str, Place]) -> dict[str, Node]:
    """The settings of a model by our names, where ours is not given too. What has no equivalent stays as it is.

    Args:
        settings: the `config` of a provider.
        source: gets what is left out.
        keys: where they stand.
    """
    made: dict[str, Node] = {}
    flat: dict[str, Node] = {}
    for key, item in settings.items():
        if key in _NESTED and isinstance(item, MapNode):
            flat |= item.items
            keys = {**keys, **item.keys}
        else:
            flat[key] = from_file(item, source)
    if {"output_format", "response_format"} <= flat.keys():
        at = keys.get("response_format", flat.pop("response_format").at)
        source.note(at, "'response_format' is omitted: promptfoo takes 'output_format'")
    if "thinking" in flat and _THINKING not in flat:
        _note_thinking(flat["thinking"], source, flat["thinking"].at)
    for key, item in flat.items():
        if key in UNUSED_SETTINGS:
            source.note(keys.get(key, item.at), f"'{key}' is not needed: {UNUSED_SETTINGS[key]}")
        elif key == "apiKey" and isinstance(item, Scalar) and "{{" not in item.text and "${" not in item.text:
            hint = "write api_key: '{{ env.NAME }}' with the variable that holds it"
            source.note(keys.get(key, item.at), "the API key is copied as plain text", hint)
            made["api_key"] = item
        elif key == _THINKING:
            _note_thinking(item, source, keys.get(key, item.at))
        else:
            for name, written in _setting(key, item).items():
                _add(made, key, key if name in flat else name, written)
    return made


def _add(made: dict[str, Node], key: str, name: str, written: Node) -> None:
    """Add a setting under our name, or under theirs where ours is taken; mappings of several are put together."""
    before = made.get(name)
    if name in _TOGETHER and isinstance(before, MapNode) and isinstance(written, MapNode):
        made[name] = mapping(before, {**before.items, **written.items})
    else:
        made[key if name in made else name] = written


def from_file(item: Node, source: Source) -> Node:
    """What a setting says, or the file that it names."""
    if not isinstance(item, Scalar) or not item.text.startswith(FILE) or source.is_code(item.text):
        return item
    if item.text.endswith((".json", ".yaml", ".yml")):
        return source.document(item.text, item) or item
    return source.content(item) or item


def _note_thinking(item: Node, source: Source, at: Place) -> None:
    """Thinking is never part of an answer here; it is in promptfoo, unless this is false."""
    message = "promptfoo puts the model's thinking into the answer; agentv does not"
    if isinstance(item, Scalar) and item.value is False:
        return
    if source.only_shown:
        source.note(at, message)
    else:
        source.tell(at, message, "write 'showThinking: false' if no assertion reads the thinking")


def _setting(key: str, item: Node) -> dict[str, Node]:
    special = _SPECIAL.get(key)
    made = special(item) if special is not None else None
    return {SETTINGS.get(key, key): item} if made is None else made


def _key_variable(item: Node) -> dict[str, Node] | None:
    return {"api_key": text_node(f"{{{{ env.{item.text} }}}}", item.at)} if isinstance(item, Scalar) else None


def _host(item: Node) -> dict[str, Node] | None:
    if not isinstance(item, Scalar):
        return None
    host = item.text.removesuffix("/")
    return {"base_url": text_node(host if "://" in host else f"https://{host}/v1", item.at)}


def _schema(item: Node) -> dict[str, Node] | None:
    """`{type: text}` is what every API does unasked."""
    kind = item.get("type") if isinstance(item, MapNode) else None
    if isinstance(kind, Scalar) and kind.text == "text":
        return {}
    return {"response_format": kind} if isinstance(kind, Scalar) and kind.text == "json_object" else None


def _output_format(item: Node) -> dict[str, Node] | None:
    """Anthropic's `{type: json_schema, schema: …}`."""
    kind, schema = (item.get("type"), item.get("schema")) if isinstance(item, MapNode) else (None, None)
    is_schema = isinstance(kind, Scalar) and kind.text == "json_schema" and schema is not None
    return {"response_format": schema} if is_schema and schema is not None else None


def _mime(item: Node) -> dict[str, Node] | None:
    if not isinstance(item, Scalar) or item.text not in ("application/json", "text/plain"):
        return None
    return {"response_format": text_node("json_object", item.at)} if item.text == "application/json" else {}


def _organization(item: Node) -> dict[str, Node]:
    return {"headers": mapping(item, {"OpenAI-Organization": item})}


def _instruction(item: Node) -> dict[str, Node] | None:
    """Google's `{parts: [{text: …}]}` as a text."""
    parts = item.get("parts") if isinstance(item, MapNode) else None
    listed = items_of(parts)
    texts = [one.get("text") for one in listed if isinstance(one, MapNode)]
    shown = [one.text for one in texts if isinstance(one, Scalar)]
    if not shown or len(shown) < len(listed):
        return None
    return {"system": text_node("\n".join(shown), item.at)}


def _effort(item: Node) -> dict[str, Node] | None:
    effort = item.get("effort") if isinstance(item, MapNode) and item.items.keys() == {"effort"} else None
    return None if effort is None else {"reasoning_effort": effort}


def _retries(item: Node) -> dict[str, Node]:
    return {"retry": mapping(item, {"max_retries": item})}


_SPECIAL: Mapping[str, Callable[[Node], dict[str, Node] | None]] = {
    "apiKeyEnvar": _key_variable,
    "apiHost": _host,
    "organization": _organization,
    "output_format": _output_format,
    "reasoning": _effort,
    "response_format": _schema,
    "response_mime_type": _mime,
    "responseMimeType": _mime,
    RETRIES: _retries,
    "num_predict": lambda item: {"max_tokens": item},
    "max_tokens_to_sample": lambda item: {"max_tokens": item},
    "max_gen_len": lambda item: {"max_tokens": item},
    "response_schema": lambda item: {"response_format": item},
    "responseSchema": lambda item: {"response_format": item},
    "extra_headers": lambda item: {"headers": item},
    "max_new_tokens": lambda item: {"max_tokens": item},
    "maxTokenCount": lambda item: {"max_tokens": item},
    "systemInstruction": _instruction,
    "instructions": lambda item: {"system": item},
    "function_call": lambda item: {"extra": mapping(item, {"function_call": item})},
    "functions": lambda item: {"extra": mapping(item, {"functions": item})},
    "parallel_tool_calls": lambda item: {"extra": mapping(item, {"parallel_tool_calls": item})},
    "verbosity": lambda item: {"extra": mapping(item, {"verbosity": item})},
}
"""Settings whose name or value is another here → what they become; None where the value has another form."""
