"""Prompts that a function writes: `prompts: [prompt.py:function, prompt.js]` (SPEC section 3)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.authoring.cases.prompts import PromptFunction, SuitePrompt
from agentv.authoring.fields.reading import Reading
from agentv.authoring.source.nodes import Node, node_of, plain, span_of
from agentv.authoring.source.python_values import as_authored
from agentv.model.suite.suite import CODE_TIMEOUT_S, Case, TargetSpec
from agentv.model.values.message import prompt_text
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject
from agentv.ports import CodeCall
from agentv.registry.fields import FunctionRef
from agentv.user_code.functions.guard import ForeignError
from agentv.user_code.workers.blocking import ADAPTERS, call_blocking

if TYPE_CHECKING:
    from agentv.user_code.javascript.host import BlockingHost

BAD_PROMPT = "bad-prompt"


class PromptFunctions:
    """Calls the functions of one suite's prompts. Each is called once for the same variables."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, str], Node | Failure] = {}
        self._host: BlockingHost | None = None

    def write(self, prompt: SuitePrompt, case: Case, targets: Sequence[TargetSpec], reading: Reading) -> Node | None:
        """Prompt that a function writes for a case: text or messages; None if it fails, which is reported.

        A case has one text for all targets, so it must be the same for each of them.
        """
        providers: list[JsonObject] = [_provider(one) for one in targets] or [{}]
        found = [self._once(prompt, case, one, reading) for one in providers]
        if any(one is None for one in found):
            return None
        if any(one is not None and found[0] is not None and plain(one) != plain(found[0]) for one in found):
            message = f"{prompt.id} writes different prompts for different targets"
            hint = "run one target at a time, with --target, or write a suite for each"
            reading.report.error(BAD_PROMPT, prompt.node, message, hint=hint)
            return None
        return found[0]

    def _once(self, prompt: SuitePrompt, case: Case, provider: JsonObject, reading: Reading) -> Node | None:
        context: JsonObject = {
            "vars": case.vars,
            "input": prompt_text(case.input) if case.input else "",
            "provider": provider,
            "config": {},
        }
        key = (prompt.id, json.dumps(context, sort_keys=True, default=str))
        if key not in self._written:
            self._written[key] = self._called(prompt, context, reading)
        found = self._written[key]
        if isinstance(found, Failure):
            reading.report.error(found.code, prompt.node, found.message)
            return None
        return found

    def close(self) -> None:
        """End the JavaScript process, if one was started."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def _called(self, prompt: SuitePrompt, context: JsonObject, reading: Reading) -> Node | Failure:
        function = prompt.function
        name = Path(str(function)).name
        try:
            if isinstance(function, FunctionRef):
                given = _in_python(function, context, name, reading.scope.env)
            else:
                given = self._in_javascript(function, context, reading, name)
            text = _returned_content(as_authored(given, name, BAD_PROMPT), name)
        except ForeignError as error:
            return error.failure
        return node_of(text, span_of(prompt.node.at))

    def _in_javascript(self, function: PromptFunction | None, context: JsonObject, reading: Reading, name: str) -> Json:
        if self._host is None:
            from agentv.user_code.javascript.host import BlockingHost

            self._host = BlockingHost(reading.scope.env, CODE_TIMEOUT_S)
        source = f"call:{getattr(function, 'name', None) or ''}:{getattr(function, 'path', '')}"
        found = self._host.call(source, {"arguments": [context]})
        if isinstance(found, Failure):
            code = BAD_PROMPT if found.code in ("assertion-raised", "assertion-crashed", "bad-result") else found.code
            raise ForeignError(Failure(code, f"{name} {found.message}"))
        return found


def _provider(target: TargetSpec) -> JsonObject:
    """A target as promptfoo shows a provider to functions."""
    model = getattr(target.settings, "model", None)
    return {"id": f"{target.provider}:{model}" if isinstance(model, str) else target.provider, "label": target.name}


def _in_python(function: FunctionRef, context: JsonObject, name: str, env: Mapping[str, str]) -> Any:
    call = CodeCall(
        "authoring",
        f"{ADAPTERS}:by_name",
        {"offered": {**context, "context": context}, "single": "context"},
        code=BAD_PROMPT,
        what=name,
        function=function.name,
        file=function.path,
        module=function.module,
        env=dict(env) or None,
    )
    return call_blocking(call, CODE_TIMEOUT_S)


def _returned_content(value: Any, name: str) -> Any:
    """The text or the messages in what a function returned; promptfoo's `{prompt}` too, and messages as JSON text."""
    if isinstance(value, Mapping) and "prompt" in value:
        if value.get("config"):
            message = f"{name} returns 'config', which a prompt cannot set; write the settings in the target"
            raise ForeignError(Failure(BAD_PROMPT, message))
        value = value["prompt"]
    if isinstance(value, str):
        value = _messages_in(value)
    if not isinstance(value, str | list) and not (isinstance(value, Mapping) and "role" in value):
        found = "nothing" if value is None else type(value).__name__
        message = f"{name} must return the text of a prompt or a list of messages, returned {found}"
        raise ForeignError(Failure(BAD_PROMPT, message))
    return value


def _messages_in(text: str) -> Any:
    if not text.lstrip().startswith("["):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if value and all(isinstance(one, dict) and "role" in one for one in value) else text
