"""promptfoo's providers as targets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentv.authoring.convert.promptfoo.source import Source, mapping, text_node
from agentv.authoring.convert.promptfoo.tables import (
    ALIKE,
    EMBEDDERS,
    OTHER_APIS,
    PROVIDERS,
    RESPONSES,
    THROUGH_LITELLM,
)
from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.spellings import SETTINGS

_EXEC = "exec:"
_MODEL = re.compile(r"openai:(?!embeddings?:|image:|moderation:|realtime:|assistant:|completion:)[\w.-]+$")
_PATH = re.compile(r"json((?:\.\w+|\[\d+\])+)$")
_HTTP_KEYS = ("url", "method", "headers", "body")
_CODE = ("python:", "file://", "javascript:", "golang:", "ruby:", "webhook:", "package:")


def targets(node: Node, source: Source) -> Node:
    """What `providers` or `targets` says: one, or a list of them."""
    if isinstance(node, ListNode):
        return ListNode([_target(item, source) for item in node.items], node.at)
    return _target(node, source)


def judge_of(node: Node, source: Source) -> Node | None:
    """The judge that a `provider` of an assertion names; None where it has no equivalent, which is reported."""
    if isinstance(node, Scalar):
        found = _named(node.text)
        if isinstance(found, str):
            return text_node(found, node.at)
    source.tell(node, "this judge provider has no equivalent", "name a target, or write provider:model")
    return None


def embedder_of(node: Node, source: Source) -> Node | None:
    """The target that embeds, for a `provider` of an assertion; None where it has no equivalent, which is reported."""
    if isinstance(node, Scalar):
        beginning = next((one for one in EMBEDDERS if node.text.startswith(one)), None)
        if beginning is not None:
            return text_node(EMBEDDERS[beginning] + node.text.removeprefix(beginning), node.at)
    source.tell(
        node, "this embedding provider has no equivalent", "name a target that computes embeddings, under 'embedder'"
    )
    return None


def _named(identity: str) -> str | None:
    """Our `provider:model` for an id of theirs."""
    if identity in ALIKE or _MODEL.match(identity):
        return identity
    return None if identity.startswith(OTHER_APIS) else _renamed(identity, PROVIDERS)


def _renamed(identity: str, beginnings: Mapping[str, str]) -> str | None:
    """An id with another beginning; None where it has none of those."""
    beginning = next((one for one in beginnings if identity.startswith(one)), None)
    return None if beginning is None else beginnings[beginning] + identity.removeprefix(beginning)


def _of_model(settings: Mapping[str, Node]) -> dict[str, Node]:
    """The settings of a model by our names, where ours is not given too. What has no equivalent stays as it is."""
    made: dict[str, Node] = {}
    for key, item in settings.items():
        name, written = _setting(key, item)
        made[key if name in settings or name in made else name] = written
    return made


def _setting(key: str, item: Node) -> tuple[str, Node]:
    if isinstance(item, Scalar) and key == "apiKeyEnvar":
        return "api_key", text_node(f"{{{{ env.{item.text} }}}}", item.at)
    if isinstance(item, Scalar) and key == "apiHost":
        return "base_url", text_node(f"https://{item.text}/v1", item.at)
    return SETTINGS.get(key, key), item


def _target(node: Node, source: Source) -> Node:
    if isinstance(node, Scalar):
        return _of(node.text, {}, node, source) or node
    if not isinstance(node, MapNode):
        source.tell(node, "this provider is neither text nor a mapping")
        return node
    if "id" not in node.items and len(node.items) == 1:  # {"openai:x": {config: …}}
        (identity, options), *_ = node.items.items()
        items = dict(options.items) if isinstance(options, MapNode) else {}
        node = mapping(node, {"id": text_node(identity, node.keys[identity]), **items})
    said = node.get("id")
    if not isinstance(said, Scalar):
        source.tell(node, "this provider has no id")
        return node
    return _of(said.text, node.items, node, source) or node


def _of(identity: str, items: Mapping[str, Node], node: Node, source: Source) -> Node | None:
    """A target with that identity and these options; None where there is no equivalent, which is reported."""
    config = items.get("config")
    settings = dict(config.items) if isinstance(config, MapNode) else {}
    name, responses = _named(identity), _renamed(identity, RESPONSES)
    if identity.startswith(("http://", "https://")) or identity in ("http", "https"):
        made = _http(identity, settings, node, source)
    elif identity.startswith(_EXEC):
        hint = "promptfoo passes the prompt, the options and the context; agentv passes only the prompt"
        if settings:
            source.tell(config or node, "the options of an 'exec' provider are not passed on", hint)
        command = identity.removeprefix(_EXEC).strip()
        made = {"provider": text_node("cli", node.at), "command": text_node(f"{command} {{PROMPT}}", node.at)}
    elif responses is not None:
        made = {
            "provider": text_node(responses, node.at),
            "api": text_node("responses", node.at),
            **_of_model(settings),
        }
    elif name is not None:
        made = {"provider": text_node(name, node.at), **_of_model(settings)}
    else:
        source.tell(node, f"the provider '{identity}' has no equivalent", _instead(identity))
        return text_node(f"unconverted:{identity}", node.at) if _reads_as_ours(identity) else None
    return _with_rest(made, items, node, source)


def _reads_as_ours(identity: str) -> bool:
    """Whether one of our providers would take an id for a model of its own."""
    return identity.partition(":")[0] in {ours.partition(":")[0] for ours in PROVIDERS.values()}


def _with_rest(made: dict[str, Node], items: Mapping[str, Node], node: Node, source: Source) -> Node:
    """The target under its label; a lone `provider:rest` is a text. Its other keys stay, and are refused."""
    rest = {key: item for key, item in items.items() if key not in ("id", "config", "label")}
    for key, item in rest.items():
        source.tell(item, f"'{key}' of a provider has no equivalent", "do it in the target, or write a separate suite")
    label = items.get("label")
    if not rest and label is None:
        if made.keys() == {"provider"}:
            return made["provider"]
        command = made.get("command")
        if made.keys() == {"provider", "command"} and isinstance(command, Scalar):
            return text_node(f"cli:{command.text}", node.at)
    named = {"name": label} if label is not None else {}
    return mapping(node, {**named, **made, **rest})


def _instead(identity: str) -> str:
    if identity.startswith(("python:", "file://")) and ".py" in identity:
        return "write a target with provider: python and function: file.py:name; it takes a prompt and returns text"
    if identity.startswith(_CODE):
        return "run it as a command: a target with provider: cli"
    model = _renamed(identity, THROUGH_LITELLM)
    if model is not None:
        return f"write litellm:{model}, with LiteLLM's name of the model; pip install 'agentv[litellm]'"
    return "see 'agentv targets' and the reference for providers; any program works with provider: cli"


def _http(identity: str, settings: dict[str, Node], node: Node, source: Source) -> dict[str, Node]:
    made: dict[str, Node] = {"provider": text_node("http", node.at)}
    if "://" in identity:
        made["url"] = text_node(identity, node.at)
    for key, item in settings.items():
        if key == "transformResponse":
            made |= _answer(item, source)
        elif key in _HTTP_KEYS:
            made[key] = source.template(item)
        else:
            source.tell(item, f"'{key}' of an HTTP provider has no equivalent", "an http target takes url, method, …")
            made[key] = item
    method = made.get("method")
    if isinstance(method, Scalar):
        made["method"] = text_node(method.text.upper(), method.at)
    else:
        made["method"] = text_node("POST" if "body" in made else "GET", node.at)
    return made


def _answer(node: Node, source: Source) -> dict[str, Node]:
    """Where the answer stands in the reply."""
    found = _PATH.match(node.text.strip()) if isinstance(node, Scalar) else None
    if found is None:
        source.tell(node, "this 'transformResponse' is not a plain path", "write 'output' with a path such as $.a.b")
        return {"transformResponse": node}
    return {"output": text_node(f"${found[1]}", node.at)}
