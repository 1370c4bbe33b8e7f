"""Converts settings of promptfoo's providers, and its assertions on tool calls, which are the output there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from agentv.authoring.source.nearest import SETTINGS
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Place, Scalar, plain
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    items_of,
    list_items,
    mapping,
    number_node,
    providers_key,
    text_in,
    text_node,
    value_at,
    without,
)
from agentv.extensions.promptfoo.tables import (
    CHAT_COMPLETIONS,
    SAGEMAKER,
    UNUSED_SETTINGS,
)

_COMPLETION_URL = "{{ env.LLAMA_BASE_URL | default('http://localhost:8080') }}/completion"
_PENALTIES = frozenset({"frequency_penalty", "penalize_nl", "presence_penalty", "repeat_last_n", "repeat_penalty"})
_MIROSTAT = frozenset({"mirostat", "mirostat_eta", "mirostat_tau"})
_CHOICE = frozenset(
    {"ignore_eos", "logit_bias", "n_keep", "n_predict", "seed", "stop", "temperature", "top_k", "top_p"}
)
_SAMPLING = _PENALTIES | _MIROSTAT | _CHOICE
"""Settings of llama.cpp that promptfoo sends."""

_N_PREDICT = 512

_SAGEMAKER = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
_SAGEMAKER_DEFAULTS: Mapping[str, float] = {"max_tokens": 1024, "temperature": 0.7, "top_p": 1}
_TEXT_PATHS = frozenset({"json.generated_text", "json[0].generated_text"})
_SAGEMAKER_UNUSED = frozenset({"modelType", "responseFormat", "contentType", "acceptType"})


def server_target(identity: str, settings: Mapping[str, Node], source: Source, at: Node) -> dict[str, Node] | None:
    """The target for a server with its own request format, or None for other providers.

    Args:
        identity: the provider's id.
        settings: its `config`.
        source: reports settings that promptfoo ignores.
        at: the provider.
    """
    if identity == "llama" or identity.startswith("llama:"):
        return _llama_server(settings, source, at)
    return _sagemaker_endpoint(identity, settings, at)


def _llama_server(settings: Mapping[str, Node], source: Source, at: Node) -> dict[str, Node]:
    """A target for the completions of a llama.cpp server."""
    body: dict[str, Node] = {"prompt": text_node("{{ prompt }}", at.at), "n_predict": number_node(_N_PREDICT, at.at)}
    for key, item in settings.items():
        if key in _SAMPLING:
            body[key] = item
        else:
            hint = "set the variable LLAMA_BASE_URL" if key.lower() == "baseurl" else None
            source.remark(item, f"'{key}' is omitted: promptfoo does not read it for llama.cpp", hint)
    made = {"provider": "http", "url": _COMPLETION_URL, "method": "POST", "output": "$.content"}
    return {**{key: text_node(text, at.at) for key, text in made.items()}, "body": mapping(at, body)}


def _sagemaker_endpoint(identity: str, settings: Mapping[str, Node], at: Node) -> dict[str, Node] | None:
    """A target for an Amazon SageMaker endpoint that LiteLLM calls in promptfoo's format, or None for others."""
    start = next((one for one in SAGEMAKER if identity.startswith(one)), None)
    if start is None or not settings.keys() <= {"region", *_SAGEMAKER, *_SAGEMAKER_UNUSED} or not _is_text(settings):
        return None
    made: dict[str, Node] = {"provider": text_node(f"litellm:sagemaker/{identity.removeprefix(start)}", at.at)}
    made |= {key: number_node(value, at.at) for key, value in _SAGEMAKER_DEFAULTS.items()}
    made |= {ours: settings[key] for key, ours in _SAGEMAKER.items() if key in settings}
    if "region" in settings:
        made["extra"] = mapping(at, {"aws_region_name": settings["region"]})
    return made


def _is_text(settings: Mapping[str, Node]) -> bool:
    """Whether the endpoint takes and returns JSON, with the generated text where LiteLLM reads it."""
    form = settings.get("responseFormat")
    types = [settings[key] for key in ("contentType", "acceptType") if key in settings]
    is_json = all(text_in(one) == "application/json" for one in types)
    return is_json and (form is None or text_in(value_at(form, "path")) in _TEXT_PATHS)


_NESTED = frozenset({"generationConfig", "inferenceConfig", "inferenceConfiguration", "textGenerationConfig"})
"""Settings that contain other settings."""

_MERGED = frozenset({"extra", "headers"})
"""Our settings that combine several of promptfoo's."""

_THINKING = "showThinking"


def model_settings(settings: Mapping[str, Node], source: Source, keys: Mapping[str, Place]) -> dict[str, Node]:
    """The settings of a model under our names, unless ours is given too. Settings without an equivalent are kept.

    Args:
        settings: the `config` of a provider.
        source: reads files, and reports what is omitted.
        keys: positions of the keys.
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
        source.remark(at, "'response_format' is omitted: promptfoo takes 'output_format'")
    if "thinking" in flat and _THINKING not in flat:
        _note_thinking(flat["thinking"], source, flat["thinking"].at)
    for key, item in flat.items():
        if key in UNUSED_SETTINGS:
            source.remark(keys.get(key, item.at), f"'{key}' is not needed: {UNUSED_SETTINGS[key]}")
        elif key == "apiKey" and isinstance(item, Scalar) and "{{" not in item.text and "${" not in item.text:
            hint = "write api_key: '{{ env.NAME }}' with the variable that holds it"
            source.remark(keys.get(key, item.at), "the API key is copied as plain text", hint)
            made["api_key"] = item
        elif key == _THINKING:
            _note_thinking(item, source, keys.get(key, item.at))
        else:
            _add(made, key, item, flat)
    return made


def _add(made: dict[str, Node], key: str, item: Node, taken: Collection[str]) -> None:
    """Add a setting under our name, or under promptfoo's if ours is taken; merge `extra` and `headers`."""
    special = _SPECIAL.get(key)
    found = special(item) if special is not None else None
    for ours, written in ({SETTINGS.get(key, key): item} if found is None else found).items():
        name = key if ours in taken else ours
        before = made.get(name)
        if name in _MERGED and isinstance(before, MapNode) and isinstance(written, MapNode):
            made[name] = mapping(before, {**before.items, **written.items})
        else:
            made[key if name in made else name] = written


def from_file(item: Node, source: Source) -> Node:
    """The value of a setting, or the content of the file that it names."""
    if not isinstance(item, Scalar) or not item.text.startswith(FILE) or source.is_code(item.text):
        return item
    if item.text.endswith((".json", ".yaml", ".yml")):
        return source.document(item.text, item) or item
    return source.content(item) or item


def _note_thinking(item: Node, source: Source, at: Place) -> None:
    """Report that only promptfoo includes the model's thinking in the answer, unless the setting is false."""
    message = "promptfoo puts the model's thinking into the answer; agentv does not"
    if isinstance(item, Scalar) and item.value is False:
        return
    if source.only_shown:
        source.remark(at, message)
    else:
        source.error(at, message, "write 'showThinking: false' if no assertion reads the thinking")


def _key_variable(item: Node) -> dict[str, Node] | None:
    return {"api_key": text_node(f"{{{{ env.{item.text} }}}}", item.at)} if isinstance(item, Scalar) else None


def _host(item: Node) -> dict[str, Node] | None:
    if not isinstance(item, Scalar):
        return None
    host = item.text.removesuffix("/")
    return {"base_url": text_node(host if "://" in host else f"https://{host}/v1", item.at)}


def _schema(item: Node) -> dict[str, Node] | None:
    """Omit `{type: text}`, the default of every API."""
    kind = value_at(item, "type")
    if text_in(kind) == "text":
        return {}
    return {"response_format": kind} if kind is not None and text_in(kind) == "json_object" else None


def _output_format(item: Node) -> dict[str, Node] | None:
    """Convert Anthropic's `{type: json_schema, schema: …}`."""
    schema, kind = value_at(item, "schema"), text_in(value_at(item, "type"))
    return {"response_format": schema} if schema is not None and kind == "json_schema" else None


def _mime(item: Node) -> dict[str, Node] | None:
    if not isinstance(item, Scalar) or item.text not in ("application/json", "text/plain"):
        return None
    return {"response_format": text_node("json_object", item.at)} if item.text == "application/json" else {}


def _instruction(item: Node) -> dict[str, Node] | None:
    """Convert Google's `{parts: [{text: …}]}` to text."""
    parts = items_of(value_at(item, "parts"))
    texts = [value_at(one, "text") for one in parts]
    shown = [one.text for one in texts if isinstance(one, Scalar)]
    if not shown or len(shown) < len(parts):
        return None
    return {"system": text_node("\n".join(shown), item.at)}


def _effort(item: Node) -> dict[str, Node] | None:
    effort = item.get("effort") if isinstance(item, MapNode) and item.items.keys() == {"effort"} else None
    return None if effort is None else {"reasoning_effort": effort}


_SPECIAL: Mapping[str, Callable[[Node], dict[str, Node] | None]] = {
    "apiKeyEnvar": _key_variable,
    "apiHost": _host,
    "organization": lambda item: {"headers": mapping(item, {"OpenAI-Organization": item})},
    "output_format": _output_format,
    "reasoning": _effort,
    "response_format": _schema,
    "response_mime_type": _mime,
    "responseMimeType": _mime,
    "maxRetries": lambda item: {"retry": mapping(item, {"max_retries": item})},
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
"""Setting whose name or value differs here → its conversion, which returns None for an unknown form."""


_CHOICES: Mapping[str, str] = {"any": "required", "auto": "auto", "none": "none", "required": "required"}
"""Values of `tool_choice`: Amazon's and Google's, in lower case → ours."""


def with_tools(settings: Mapping[str, Node]) -> dict[str, Node]:
    """The settings with `tools` and `tool_choice` in our form; unknown forms are kept."""
    made = dict(settings)
    form = made.get("toolConfig")
    if isinstance(form, MapNode) and form.items.keys() <= {"tools", "toolChoice", "functionCallingConfig"}:
        del made["toolConfig"]
        made = {**form.items, **made}
    for key in ("toolChoice", "functionCallingConfig"):
        choice = _choice(made[key]) if key in made else None
        if choice is not None:
            del made[key]
            made["tool_choice"] = choice
    tools = made.get("tools")
    if isinstance(tools, ListNode):
        made["tools"] = ListNode([one for item in tools.items for one in _tools(item)], tools.at)
    return made


def _choice(node: Node) -> Node | None:
    """Our form of `auto`, `{auto: {}}`, `{tool: {name: …}}` or `{mode: AUTO}`; None for any other form."""
    if isinstance(node, MapNode) and node.items.keys() == {"mode"}:
        node = node.items["mode"]
    if isinstance(node, MapNode) and len(node.items) == 1:
        (key, inner), *_ = node.items.items()
        name = value_at(inner, "name")
        if key == "tool" and isinstance(name, Scalar):
            return name
        node = text_node(key, node.at)
    found = _CHOICES.get(node.text.lower()) if isinstance(node, Scalar) else None
    return None if found is None else text_node(found, node.at)


def _tools(node: Node) -> Iterator[Node]:
    """Yield the functions that an entry of `tools` declares, or the entry itself if its form is unknown."""
    if not isinstance(node, MapNode):
        yield node
        return
    declared = node.get("functionDeclarations") or node.get("function_declarations")
    spec = node.get("toolSpec")
    if isinstance(declared, ListNode) and len(node.items) == 1:
        for item in declared.items:
            yield _function(item, node) if isinstance(item, MapNode) else item
    elif isinstance(spec, MapNode) and len(node.items) == 1:
        given, inner = without(spec, "inputSchema").items, value_at(spec, "inputSchema", "json")
        yield _function(mapping(spec, given if inner is None else {**given, "parameters": inner}), node)
    else:
        yield node


def _function(declared: MapNode, node: Node) -> Node:
    parameters = declared.get("parameters")
    written = {**declared.items, **({} if parameters is None else {"parameters": _lower_types(parameters)})}
    return mapping(node, {"type": text_node("function", node.at), "function": mapping(declared, written)})


def _lower_types(node: Node) -> Node:
    """A JSON Schema with the names of its types in lower case; Google writes `OBJECT`."""
    if isinstance(node, ListNode):
        return ListNode([_lower_types(item) for item in node.items], node.at)
    if not isinstance(node, MapNode):
        return node
    kind = node.get("type")
    made = {key: _lower_types(item) for key, item in node.items.items()}
    if isinstance(kind, Scalar) and kind.text.isupper():
        made["type"] = text_node(kind.text.lower(), kind.at)
    return mapping(node, made)


_CALLS = """(() => {
  try {
    const calls = Array.isArray(output) ? output : output.tool_calls;
    return calls.map((call) => ({ name: call.function.name, arguments: JSON.parse(call.function.arguments) }));
  } catch {
    return 'not calls of tools';
  }
})()"""

_CALL = """(() => {
  try {
    const call = output.function_call ?? output;
    return [{ name: call.name, arguments: JSON.parse(call.arguments) }];
  } catch {
    return 'not a call of a function';
  }
})()"""

_CHECKS: Mapping[str, tuple[str, str]] = {
    "is-valid-openai-function-call": ("functions", _CALL),
    "is-valid-openai-tools-call": ("tools", _CALLS),
}
"""Type of assertion → setting that declares the functions, and code that extracts the calls from the output."""


def with_calls_as_output(made: dict[str, Node]) -> dict[str, Node]:
    """The target. If its model has tools, tool calls are the output, as in promptfoo."""
    provider, extra = made.get("provider"), made.get("extra")
    calls = "tools" in made or (isinstance(extra, MapNode) and "functions" in extra.items)
    chat = isinstance(provider, Scalar) and provider.text.partition(":")[0] in CHAT_COMPLETIONS and "api" not in made
    return {**made, "tool_calls_as_output": Scalar(True, "true", provider.at)} if calls and chat and provider else made


def declared_calls(root: MapNode, source: Source) -> Mapping[str, Node]:
    """The `tools` and the `functions` that providers declare, if all that declare some agree."""
    configs = [value_at(one, "config") for one in items_of(root.get(providers_key(root)))]
    made: dict[str, Node] = {}
    for key in ("tools", "functions"):
        own = [value_at(one, key) for one in configs]
        found = [from_file(one, source) for one in own if one is not None]
        if found and all(plain(one) == plain(found[0]) for one in found):
            made[key] = found[0]
    return made


def assertion_on_calls(kind: Scalar, node: MapNode, source: Source) -> dict[str, Node] | None:
    """The keys of an assertion that checks calls with a JSON Schema, or None if that is not possible."""
    key, transform = _CHECKS.get(kind.text, ("", ""))
    declared = source.declared_calls.get(key)
    # a tool of another kind, such as an MCP server, declares no function
    functions = [value_at(one, "function") if key == "tools" else one for one in list_items(declared)]
    called = [one for one in functions if isinstance(one, MapNode) and {"name", "parameters"} <= one.items.keys()]
    schemas = [_call_schema(one, node.at) for one in called]
    if not schemas or len(schemas) < len(functions) or "transform" in node.items:
        return None
    item = mapping(node, {"anyOf": ListNode(schemas, node.at)})
    least = Scalar(1, "1", node.at)
    schema: dict[str, Node] = {"type": text_node("array", node.at), "minItems": least, "items": item}
    code = text_node(f"javascript:\n{transform}\n", node.at)
    return {"type": text_node("is-json", kind.at), "transform": code, "value": mapping(node, schema)}


def _call_schema(function: MapNode, at: Place) -> Node:
    names: list[Node] = [text_node(name, at) for name in ("name", "arguments")]
    name, parameters = function.items["name"], function.items["parameters"]
    properties = mapping(function, {"name": mapping(function, {"const": name}), "arguments": parameters})
    schema: dict[str, Node] = {"type": text_node("object", at), "required": ListNode(names, at)}
    return mapping(function, {**schema, "properties": properties})
