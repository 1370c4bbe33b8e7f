"""Arguments of promptfoo's `call_api(prompt, options, context)` and `callApi(prompt, context, options)`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentv.model.values.values import Json
from agentv.ports import TargetRequest


def prompt_of(request: TargetRequest) -> str:
    """The prompt: the text of a lone user message, or else the messages as JSON, which providers parse."""
    lone = request.messages[0] if len(request.messages) == 1 else None
    if lone is not None and lone.role == "user" and isinstance(lone.as_json().get("content"), str):
        return request.prompt
    return json.dumps([message.as_json() for message in request.messages], ensure_ascii=False, default=str)


def options_of(name: str, config: Mapping[str, Json]) -> dict[str, Any]:
    """The options: `id` and `label`, both the target's name, and its `config`."""
    return {"id": name, "label": name, "config": config}


def context_of(request: TargetRequest) -> dict[str, Any]:
    """The context: `vars`, `prompt`, `test` and the numbers of the call."""
    return {
        "vars": request.vars,
        "prompt": {"raw": request.prompt, "label": request.prompt_id or request.prompt},
        "test": {
            "vars": request.vars,
            "metadata": request.metadata,
            "description": request.case_id,
        },
        "testCaseId": request.case_id,
        "repeatIndex": request.sample - 1,
    }
