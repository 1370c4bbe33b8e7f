"""Converts promptfoo's providers to targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from agentv.authoring.source.nodes import ListNode, MapNode, Node, Scalar
from agentv.authoring.source.report import Report
from agentv.extensions.promptfoo.code import response_path
from agentv.extensions.promptfoo.settings import (
    model_settings,
    server_target,
    with_calls_as_output,
    with_tools,
)
from agentv.extensions.promptfoo.source import (
    FILE,
    Source,
    items_of,
    mapping,
    mapping_items,
    number_node,
    text_in,
    text_node,
    value_at,
)
from agentv.extensions.promptfoo.tables import (
    AGENT_KEYS,
    AGENTS,
    DOCUMENTS,
    EMBEDDERS,
    JAVASCRIPT,
    LANGUAGE,
    LOCAL_SERVERS,
    NOT_CHAT,
    OTHER_APIS,
    PERMISSIONS,
    PROVIDERS,
    PYTHON,
    REFUSED,
    RESPONSES,
    SAME_PROVIDERS,
    SENT_UNCHANGED,
    SERVERS,
)

_EXEC = "exec:"
_OPENAI_MODEL = re.compile(
    r"openai:(?!embeddings?:|image:|moderation:|realtime:|assistant:|completion:|codex|agents:|chatkit:|"
    r"transcription:|speech:|tts:|video:)[^\s]+$"
)
_HTTP_KEYS = ("url", "method", "headers", "body")
_PROGRAMS = ("golang:", "ruby:", "package:", "ws:", "wss:", "websocket:")
_SECONDS = 60
_KNOWN = frozenset({"id", "label", "config", "prompts", "transform", "delay", "env", "inputs"})


class _Provider(Struct, frozen=True):
    """A provider of the configuration.

    Attributes:
        identity: its id, such as `openai:chat:gpt-5`.
        config: its settings.
        node: all of it.
        source: reports what has no equivalent.
    """

    identity: str
    config: MapNode | None
    node: Node
    source: Source

    @property
    def settings(self) -> dict[str, Node]:
        """The settings under `config`."""
        return dict(self.config.items) if self.config is not None else {}

    def model_settings(self) -> dict[str, Node]:
        """The settings of a model under our names."""
        return model_settings(self.settings, self.source, self.config.keys) if self.config is not None else {}

    def text(self, text: str) -> Scalar:
        """A text node at the position of the provider."""
        return text_node(text, self.node.at)


def targets(node: Node, source: Source) -> Node:
    """Convert `providers` or `targets`, one provider or a list of them."""
    made = [_with_thoughts(one) for one in _with_unique_names(_targets(node, source))]
    return made[0] if len(made) == 1 and not isinstance(node, ListNode) else ListNode(made, node.at)


def _with_unique_names(made: list[Node]) -> Iterator[Node]:
    """The targets, with a number added to repeated names: promptfoo allows the same provider twice."""
    taken: dict[str, int] = {}
    for one in made:
        name = text_in((value_at(one, "name") or value_at(one, "provider")) if isinstance(one, MapNode) else one)
        number = taken[name] = taken.get(name, 0) + 1
        if number == 1:
            yield one
        else:
            items = dict(one.items) if isinstance(one, MapNode) else {"provider": one}
            yield mapping(one, {**items, "name": text_node(f"{name}-{number}", one.at)})


def _with_thoughts(target: Node) -> Node:
    """The target with `thoughts: keep`, because promptfoo grades them too. Other nodes are returned unchanged."""
    if isinstance(target, Scalar):
        target = MapNode({"provider": target}, {"provider": target.at}, target.at)
    if not isinstance(target, MapNode) or "provider" not in target.items:
        return target
    return mapping(target, {**target.items, "thoughts": text_node("keep", target.at)})


def named_targets(node: Node | None, source: Source) -> dict[str, Node]:
    """Id or label of a provider → its target."""
    silent = replace(source, reading=source.reading.reporting_to(Report()))
    found: dict[str, Node] = {}
    for item in items_of(node):
        made = _target(item, silent) if isinstance(item, Scalar | MapNode) else None
        names = [item.get("id"), item.get("label")] if isinstance(item, MapNode) else [item]
        if made is not None:
            found |= {one.text: _with_thoughts(made) for one in names if isinstance(one, Scalar)}
    return found


def _targets(node: Node, source: Source) -> list[Node]:
    if isinstance(node, ListNode):
        return [one for item in node.items for one in _targets(item, source)]
    if isinstance(node, Scalar) and node.text.startswith(FILE) and node.text.endswith(DOCUMENTS):
        found = source.document(node.text, node)
        return [node] if found is None else _targets(found, source.inside(node.text))
    return [_target(node, source)]


def _target(node: Node, source: Source) -> Node:
    if isinstance(node, Scalar):
        return _target_for(node.text, {}, node, source)
    if not isinstance(node, MapNode):
        source.error(node, "this provider is neither text nor a mapping")
        return node
    if "id" not in node.items and len(node.items) == 1:  # {"openai:x": {config: …}}
        (identity, options), *_ = node.items.items()
        items = dict(mapping_items(options))
        own = items.pop("id", None)  # below an id, `id` is a label
        named = {"label": own} if own is not None else {}
        node = mapping(node, {**named, **items, "id": text_node(identity, node.keys[identity])})
    said = node.get("id")
    if not isinstance(said, Scalar):
        source.error(node, "this provider has no id")
        return node
    return _target_for(said.text, node.items, node, source)


def judge_of(node: Node, source: Source) -> Node | None:
    """The judge that the option `provider` names, or None. One without an equivalent is reported.

    The option is one provider for all purposes, or `{text: …, embedding: …}`.
    """
    if isinstance(node, MapNode) and "id" not in node.items:
        provider = node.get("text")
        return None if provider is None else judge_of(provider, source)
    made = _target(node, source) if isinstance(node, Scalar | MapNode) else None
    if isinstance(made, Scalar):
        return made if ":" in made.text and not made.text.startswith(FILE) else None
    return made if isinstance(made, MapNode) and "provider" in made.items else None


def named_judge_of(node: Node, source: Source) -> dict[str, Node]:
    """The keys for the judge of an assertion, which must be a `provider:model`; empty if it has no equivalent."""
    made = judge_of(node, source)
    if isinstance(made, MapNode):
        model, temperature = made.get("provider"), made.get("temperature")
        if isinstance(model, Scalar) and ":" in model.text and made.items.keys() <= {"name", "provider", "temperature"}:
            return {"judge": model} if temperature is None else {"judge": model, "temperature": temperature}
        hint = "define the judge in .agentv/targets.yaml, and write its name under 'judge'"
        source.error(node, "the settings of this judge cannot be written in an assertion", hint)
        return {}
    return {} if made is None else {"judge": made}


def embedder_of(node: Node, source: Source) -> Node | None:
    """The embedder for the `provider` of an assertion, or None if it has no equivalent, which is reported."""
    provider = node
    if isinstance(node, MapNode):
        provider = node.get("embedding") or (node if node.items.keys() - {"id"} else node.get("id")) or node
    if isinstance(provider, Scalar):
        found = _renamed(provider.text, EMBEDDERS)
        if found is not None:
            return text_node(found, provider.at)
    source.error(
        node, "this embedding provider has no equivalent", "name a target that computes embeddings, under 'embedder'"
    )
    return None


def _renamed(identity: str, beginnings: Mapping[str, str]) -> str | None:
    """The id with its prefix replaced, or None if it has none of these prefixes."""
    beginning = next((one for one in beginnings if identity.startswith(one)), None)
    return None if beginning is None else beginnings[beginning] + identity.removeprefix(beginning)


def _target_for(identity: str, items: Mapping[str, Node], node: Node, source: Source) -> Node:
    """The target for a provider's id and keys; the node itself if it has no equivalent, which is reported."""
    config = items.get("config")
    provider = _Provider(identity.strip(), config if isinstance(config, MapNode) else None, node, source)
    made = _target_keys(provider)
    if made is None:
        source.error(node, f"the provider '{identity}' has no equivalent", _hint(identity))
        return node
    return _with_rest(with_calls_as_output(made), items, node, source)


def _target_keys(provider: _Provider) -> dict[str, Node] | None:
    """The keys of a target, or None if the provider has no equivalent."""
    identity = provider.identity
    if identity.startswith(("http://", "https://")) or identity in ("http", "https"):
        return _http(provider)
    if identity.startswith("webhook:"):
        body: dict[str, Node] = {"prompt": provider.text("{{ prompt }}")}
        if provider.config is not None:
            body["config"] = provider.config
        return {
            "provider": provider.text("http"),
            "url": provider.text(identity.removeprefix("webhook:")),
            "method": provider.text("POST"),
            "body": mapping(provider.node, body),
            "template": provider.text(LANGUAGE["template"]),
            "output": provider.text("$.output"),
        }
    if identity.startswith(_EXEC):
        return _command(provider)
    agent = next((AGENTS[one] for one in AGENTS if identity.startswith(one)), None)
    if agent is not None:
        return _agent(agent, provider)
    own = server_target(identity, provider.settings, provider.source, provider.node)
    return own or _code(provider) or _model(provider)


def _model(provider: _Provider) -> dict[str, Node] | None:
    identity = provider.identity
    responses = _renamed(identity, RESPONSES)
    if responses is not None:
        settings = _with_extra(responses.partition(":")[0], provider.model_settings(), provider.node)
        return {"provider": provider.text(responses), "api": provider.text("responses"), **settings}
    if identity in SAME_PROVIDERS:
        return {"provider": provider.text(identity)}
    if identity.startswith(OTHER_APIS):
        return None
    server = _server(provider)
    if server is not None:
        return server
    name = identity if _OPENAI_MODEL.match(identity) and not identity.startswith("openai:chat:") else None
    name = name or _renamed(identity, PROVIDERS)
    if name is None:
        return None
    settings = _without_model(name, provider.model_settings())
    if name.startswith("azure:"):
        address = settings.get("base_url")
        if isinstance(address, Scalar):  # the URL of an Azure resource has no path
            settings["base_url"] = text_node(address.text.removesuffix("/v1"), address.at)
    elif name.partition(":")[0] in _CLOUD_SETTINGS:
        # settings that only the cloud's API knows are passed through
        names = _CLOUD_SETTINGS[name.partition(":")[0]]
        settings = with_tools(settings)
        made = {names.get(key, key): item for key, item in settings.items() if key not in _PASSED_THROUGH}
        passed = {key: item for key, item in settings.items() if key in _PASSED_THROUGH}
        passed |= mapping_items(made.pop("extra", None))
        settings = {**made, "extra": mapping(provider.node, passed)} if passed else made
    settings = _with_extra(name.partition(":")[0], settings, provider.node)
    return {"provider": provider.text(name), **settings}


def _agent(name: str, provider: _Provider) -> dict[str, Node]:
    """A target for a coding agent, which works in a copy of its directory."""
    source, model = provider.source, provider.identity.split(":")[2:]
    made: dict[str, Node] = {"provider": provider.text(name)}
    made |= {"model": provider.text(":".join(model))} if model else {}
    (mode, allowing), *_ = (*PERMISSIONS.get(name, {}).items(), ("", frozenset({""})))
    settings = provider.settings
    given_mode = settings.pop(mode, None)
    if text_in(given_mode) not in allowing:
        made["permissions"] = provider.text("deny")
    for key, item in settings.items():
        if key == "skip_git_repo_check":
            source.remark(item, f"'{key}' is omitted: agentv's agents need no git repository")
            continue
        if key not in AGENT_KEYS:
            source.error(item, f"'{key}' of a coding agent has no equivalent", f"write what '{name}' has instead")
        made[AGENT_KEYS.get(key, key)] = item
    return made


def _with_extra(provider: str, settings: dict[str, Node], at: Node) -> dict[str, Node]:
    """The settings, with those that are sent unchanged moved under `extra`."""
    sent = {key: item for key, item in settings.items() if key in SENT_UNCHANGED.get(provider, ())}
    if not sent:
        return settings
    extra = mapping(at, {**mapping_items(settings.get("extra")), **sent})
    return {**{key: item for key, item in settings.items() if key not in sent}, "extra": extra}


def _without_model(name: str, settings: dict[str, Node]) -> dict[str, Node]:
    """The settings, without a model if the id names one, which promptfoo prefers."""
    model_keys = {"model", "deployment", "deploymentName"} if name.partition(":")[2] else set()
    return {key: item for key, item in settings.items() if key not in model_keys}


def _server(provider: _Provider) -> dict[str, Node] | None:
    """A target for a service or local server with OpenAI's API, or None for other providers."""
    identity = provider.identity
    start = next((one for one in (*SERVERS, *LOCAL_SERVERS) if identity.startswith(one)), None)
    rest = identity.removeprefix(start).removeprefix("chat:") if start is not None else ""
    if start is None or rest.startswith(NOT_CHAT) or not rest:
        return None
    made: dict[str, Node] = {"provider": provider.text(f"openai:{rest}")}
    if start in SERVERS:
        url, variable = SERVERS[start]
        made |= {"base_url": provider.text(url), "api_key": provider.text(f"{{{{ env.{variable} }}}}")}
    else:
        made["base_url"] = provider.text(LOCAL_SERVERS[start])
    return made | _without_model("openai:x", provider.model_settings())


_CLOUD_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "bedrock": {},
    "vertex": {"region": "location", "projectId": "project"},
}
"""Cloud → names of its settings: promptfoo's → ours."""

_PASSED_THROUGH = frozenset({"thinking", "thinkingConfig", "top_k"})
"""Settings that LiteLLM takes as parameters."""


def _code(provider: _Provider) -> dict[str, Node] | None:
    """A target that calls a function of a file, or None if the id names none."""
    identity = provider.identity
    kind, colon, rest = identity.partition(":")
    named = rest if colon and kind in ("python", "javascript") else identity
    path, _, function = named.removeprefix(FILE).partition(":")
    suffix = PurePosixPath(path).suffix
    if suffix in PYTHON and (kind == "python" or identity.startswith(FILE)):
        made = {"provider": "python", "function": f"{path}:{function or 'call_api'}"}
    elif suffix in JAVASCRIPT and (kind == "javascript" or identity.startswith(FILE) or ":" not in identity):
        made = {"provider": "javascript", "function": f"{path}:{function}" if function else path}
    else:
        return None
    settings = provider.settings
    for key in ("pythonExecutable", "workers", "timeout"):
        if key in settings and provider.config is not None and made["provider"] == "python":
            at = provider.config.keys[key]
            provider.source.remark(at, f"'{key}' is not needed: agentv calls the function in its own process")
            del settings[key]
    keys: dict[str, Node] = {key: provider.text(text) for key, text in made.items()}
    return {**keys, "config": mapping(provider.config, settings)} if settings and provider.config else keys


def _command(provider: _Provider) -> dict[str, Node]:
    """A target that runs a command with promptfoo's three arguments, named by the id without them."""
    settings = provider.settings
    command = f"{provider.identity.removeprefix(_EXEC).strip()} {{PROMPT}} {{OPTIONS}} {{CONTEXT}}"
    named = {"name": provider.text(provider.identity)}
    made: dict[str, Node] = {**named, "provider": provider.text("cli"), "command": provider.text(command)}
    base = settings.pop("basePath", None)
    if base is not None:
        made["cwd"] = base
    if settings and provider.config is not None:
        made["options"] = mapping(provider.config, settings)
    return made


def _with_rest(made: dict[str, Node], items: Mapping[str, Node], node: Node, source: Source) -> Node:
    """The target with its label and other keys, or only its id. Keys without an equivalent are reported."""
    rest: dict[str, Node] = {}
    keys = node.keys if isinstance(node, MapNode) else {}
    for key, item in items.items():
        if key == "env":
            rest["env"] = item
        elif key == "delay":
            rest |= _rate(item)
        elif key == "transform":
            source.error(
                item, "'transform' of a provider has no equivalent", "move it to 'options.transform' of the tests"
            )
            rest[key] = item
        elif key == "prompts":
            source.error(keys.get(key, item.at), "'prompts' of a provider has no equivalent", REFUSED[key])
        elif key not in _KNOWN:
            source.unknown_key(key, keys.get(key, item.at), " of a provider", _KNOWN)
        elif key == "inputs":
            source.error(item, "'inputs' of a provider has no equivalent", "agentv does not generate attacks")
    label = items.get("label")
    if not rest and not isinstance(label, Scalar) and made.keys() == {"provider"}:
        return made["provider"]
    named = {"name": label} if isinstance(label, Scalar) else {}
    return mapping(
        node, {**named, **made, **named, **rest}
    )  # the name comes first, and a label replaces a command's name


def _rate(node: Node) -> dict[str, Node]:
    """Convert the milliseconds between two calls to calls per minute."""
    if not isinstance(node, Scalar) or not isinstance(node.value, int | float) or node.value <= 0:
        return {}
    rate = number_node(round(_SECONDS * 1000 / node.value, 2), node.at)
    return {"rate": mapping(node, {"requests_per_minute": rate})}


def _seconds(node: Scalar) -> dict[str, Node]:
    """Convert a time limit in milliseconds to `timeout_s`."""
    if not isinstance(node.value, int | float) or node.value <= 0:
        return {}
    return {"timeout_s": number_node(node.value / 1000, node.at)}


def _hint(identity: str) -> str:
    if identity.startswith((*_PROGRAMS, FILE)):
        return "run it as a command: a target with provider: cli"
    if identity == "promptfoo:simulated-user":
        return "write it as 'provider' of 'defaultTest' or of a test; 'providers' are what it talks with"
    if identity.startswith("promptfoo:"):
        return "agentv does not generate attacks; write them as cases"
    return "write a target of another provider: 'agentv targets' lists them; any program works with provider: cli"


def _http(provider: _Provider) -> dict[str, Node]:
    source, node = provider.source, provider.node
    made: dict[str, Node] = {"provider": text_node("http", node.at)}
    if "://" in provider.identity:
        made["url"] = text_node(provider.identity, node.at)
    for key, item in provider.settings.items():
        if key in ("transformResponse", "responseParser"):
            made |= response_path(item, source)
        elif key in _HTTP_KEYS:
            made[key] = item
        elif key in ("responseTimeout", "timeout", "timeoutMs") and isinstance(item, Scalar):
            made |= _seconds(item)
        elif key == "maxRetries":
            made["retry"] = mapping(item, {"max_retries": item})
        else:
            source.error(item, f"'{key}' of an HTTP provider has no equivalent", "an http target takes url, method, …")
    made["template"] = text_node(LANGUAGE["template"], node.at)
    method = made.get("method")
    if isinstance(method, Scalar):
        made["method"] = text_node(method.text.upper(), method.at)
    else:
        made["method"] = text_node("POST" if "body" in made else "GET", node.at)
    return made
