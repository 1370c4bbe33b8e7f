"""Judge prompts that code of the user's writes: a Python function, a TypeScript or JavaScript file, a command."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentv.assertions.services_for_workers import ADAPTERS, services_of
from agentv.model.run.context import AssertionContext, wire_of_context
from agentv.model.run.rubric import WRITER_NAMES
from agentv.model.values.message import Message, messages_from_json
from agentv.model.values.response import Failure
from agentv.model.values.values import Json, JsonObject, plain_json
from agentv.ports import CodeCall, Raised
from agentv.registry.fields import Command, FunctionRef, JavaScriptSource, PromptCode
from agentv.user_code.excerpts import last_error
from agentv.user_code.javascript.runtime import with_sdk
from agentv.user_code.processes import run_program

PROMPT_FAILED = "judge-prompt-failed"

_ADDED = ("rubrics", "tool_calls", "file_changes", "context", "transcript")
"""Variables of prompts that files and commands get beside the context of section 8, under the same names."""

Made = str | tuple[Message, ...] | Failure


@dataclass(frozen=True, slots=True)
class CodeWriter:
    """The PromptWriter over code of the user's. Whoever grades the entry cancels it when its time is up."""

    code: PromptCode

    async def write(self, values: Mapping[str, Json], context: AssertionContext) -> Made:
        """The prompt, or a Failure if the code raises, or returns or prints something else."""
        if self.code.function is not None:
            return await _called(self.code.function, values, self.code.config, context)
        payload = payload_of(values, context, self.code.config)
        if self.code.script is not None:
            return await _scripted(self.code.script, payload, context)
        return await _printed(self.code.command or Command(), payload, context)


def payload_of(values: Mapping[str, Json], context: AssertionContext, config: JsonObject) -> dict[str, Json]:
    """Payload of a file or a command: the context of section 8, and prompt variables under their older names."""
    return {
        **context.payload,
        **{name: values[name] for name in _ADDED if name in values},
        "config": config,
        "criteria": values["criteria"],
        "question": values["question"],
        "answer": values["output"],
        "candidate_answer": values["candidate_answer"],
        "reference_answer": values["reference_answer"],
        "expected_outcome": values["expected_outcome"],
        "sidecar": context.metadata,
    }


async def _called(
    function: FunctionRef, values: Mapping[str, Json], config: JsonObject, context: AssertionContext
) -> Made:
    others: dict[str, Any] = {"vars": context.vars, "config": config, "case_id": context.case_id}
    call = CodeCall(
        "grading",
        f"{ADAPTERS}:by_name",
        {
            "offered": {**dict.fromkeys(WRITER_NAMES, ""), **values, **others},
            "single": "ctx",
            "context_as": ("ctx",),
            "context": wire_of_context(context),
        },
        code=PROMPT_FAILED,
        what=function.name,
        function=function.name,
        file=function.path,
        module=function.module,
        env=dict(context.env) or None,
        handler=services_of(context),
    )
    found = await context.services.executor.python(call)
    if not isinstance(found, Raised):
        return _read(found.value, function.name)
    if found.code == "bad-result":
        return Failure(PROMPT_FAILED, f"{function.name} must return text or messages, not {found.cause}")
    return found


async def _scripted(script: JavaScriptSource, payload: JsonObject, context: AssertionContext) -> Made:
    name = (script.path or "").rpartition("/")[2]
    source = f"prompt:{script.name or ''}:{script.path}"
    found = await context.services.javascript.grade(source, payload, math.inf)
    if isinstance(found, Failure):
        raised = found.code in ("assertion-raised", "bad-result")
        return Failure(PROMPT_FAILED if raised else found.code, f"{name} {found.message}")
    return _read(found.get("prompt"), name)


async def _printed(command: Command, payload: JsonObject, context: AssertionContext) -> Made:
    stdin = json.dumps(payload, default=plain_json).encode()
    ended = await run_program(command, stdin=stdin, env=await with_sdk(command, context.env), timeout_s=math.inf)
    if isinstance(ended, Failure):
        return ended
    if ended.status:
        message = last_error(ended.stderr)
        return Failure(PROMPT_FAILED, f"it exited with {ended.status}{message and f': {message}'}")
    return _read(ended.stdout.decode(errors="replace").strip(), str(command))


def _read(value: object, what: str) -> Made:
    """Text, a message or several; everything else is no prompt."""
    if isinstance(value, str):
        return value if value.strip() else Failure(PROMPT_FAILED, f"{what} returned an empty prompt")
    given = [value] if isinstance(value, Mapping | Message) else value
    if not isinstance(given, list | tuple):
        return Failure(PROMPT_FAILED, f"{what} must return text or messages, not {type(value).__name__}")
    rows = [one.as_json() if isinstance(one, Message) else one for one in given]
    if not all(isinstance(one, Mapping) for one in rows):
        return Failure(PROMPT_FAILED, f"{what} must return text or messages, and an entry of its list is null")
    try:
        return messages_from_json(rows) or Failure(PROMPT_FAILED, f"{what} returned an empty list of messages")
    except ValueError as error:
        return Failure(PROMPT_FAILED, f"{what} returned an invalid message: {error}")
