"""Providers that are servers with a form of request of their own: llama.cpp, Amazon SageMaker, TrueFoundry."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentv.authoring.source.nodes import MapNode, Node, Scalar, plain
from agentv.extensions.promptfoo.translation.providers.provider_tables import (
    SAGEMAKER,
    SERVICE_HEADERS,
    SERVICE_PARAMETERS,
)
from agentv.extensions.promptfoo.translation.source import Source, mapping, number_node, text_node

_COMPLETION = "{{ env.LLAMA_BASE_URL | default('http://localhost:8080') }}/completion"
_SAMPLING = frozenset(
    {
        "frequency_penalty",
        "ignore_eos",
        "logit_bias",
        "mirostat",
        "mirostat_eta",
        "mirostat_tau",
        "n_keep",
        "n_predict",
        "penalize_nl",
        "presence_penalty",
        "repeat_last_n",
        "repeat_penalty",
        "seed",
        "stop",
        "temperature",
        "top_k",
        "top_p",
    }
)
"""Settings of llama.cpp that promptfoo sends."""

_TOKENS = 512

_SAGEMAKER = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
_SAGEMAKER_DEFAULTS: Mapping[str, float] = {"max_tokens": 1024, "temperature": 0.7, "top_p": 1}
_TEXT_PATHS = frozenset({"json.generated_text", "json[0].generated_text"})
_SAGEMAKER_UNUSED = frozenset({"modelType", "responseFormat", "contentType", "acceptType"})


def own_form(identity: str, settings: Mapping[str, Node], source: Source, at: Node) -> dict[str, Node] | None:
    """A server with a form of request of its own; None for other providers.

    Args:
        identity: the provider's id.
        settings: its `config`.
        source: gets what promptfoo does not read.
        at: the provider.
    """
    if identity == "llama" or identity.startswith("llama:"):
        return _llama_server(settings, source, at)
    return _sagemaker_endpoint(identity, settings, at)


def _llama_server(settings: Mapping[str, Node], source: Source, at: Node) -> dict[str, Node]:
    """A server of llama.cpp, which completes a text."""
    body: dict[str, Node] = {"prompt": text_node("{{ prompt }}", at.at), "n_predict": number_node(_TOKENS, at.at)}
    for key, item in settings.items():
        if key in _SAMPLING:
            body[key] = item
        else:
            hint = "set the variable LLAMA_BASE_URL" if key.lower() == "baseurl" else None
            source.note(item, f"'{key}' is omitted: promptfoo does not read it for llama.cpp", hint)
    made = {"provider": "http", "url": _COMPLETION, "method": "POST", "output": "$.content"}
    return {**{key: text_node(text, at.at) for key, text in made.items()}, "body": mapping(at, body)}


def _sagemaker_endpoint(identity: str, settings: Mapping[str, Node], at: Node) -> dict[str, Node] | None:
    """An endpoint of Amazon SageMaker that LiteLLM asks in the same form; None for all others."""
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
    """Whether the answer is the generated text, in the forms that LiteLLM reads, and nothing has another type."""
    form = settings.get("responseFormat")
    path = form.get("path") if isinstance(form, MapNode) else None
    types = [settings[key] for key in ("contentType", "acceptType") if key in settings]
    is_json = all(isinstance(one, Scalar) and one.text == "application/json" for one in types)
    return is_json and (form is None or (isinstance(path, Scalar) and path.text in _TEXT_PATHS))


def with_service_settings(start: str, settings: Mapping[str, Node], made: dict[str, Node], at: Node) -> dict[str, Node]:
    """What a service with OpenAI's API takes beside that API's settings: as headers, or in the body."""
    names = SERVICE_HEADERS.get(start)
    if names is None:
        return made
    headers = {
        names[key]: text_node(json.dumps(plain(item)), item.at) for key, item in settings.items() if key in names
    }
    passed = {key: item for key, item in settings.items() if key in SERVICE_PARAMETERS}
    kept = {key: item for key, item in made.items() if key not in names and key not in passed}
    for key, more in (("headers", headers), ("extra", passed)):
        given = kept.get(key)
        if more:
            kept[key] = mapping(at, {**(given.items if isinstance(given, MapNode) else {}), **more})
    return kept
