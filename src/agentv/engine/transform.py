"""Apply `transform` to an output before it is graded (SPEC section 7.1)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agentv.matching.json_text import NotJson, UnsearchableError, json_in
from agentv.model.run.context import AssertionContext, promptfoo_context, wire_of_context
from agentv.model.suite.assertion import Transform
from agentv.model.values import json_path
from agentv.model.values.formatting import shorten
from agentv.model.values.response import Failure
from agentv.model.values.retrieved import context_json
from agentv.model.values.values import Json
from agentv.ports import CodeCall, Raised
from agentv.templating import RenderError, Scope, evaluate

JAVASCRIPT = frozenset({"javascript", "javascript-file"})
CODE = JAVASCRIPT | {"function"}
"""Kinds of transforms that run user code."""

_OF_ASSERTIONS = frozenset({"assertion-raised", "assertion-crashed", "bad-result"})
"""Failure codes of the JavaScript host that are about assertions; a transform reports `transform-failed` instead."""

_SHOWN_ANSWER = 60
"""Maximum length of an answer in a message; the redactor also finds a secret that is cut off there."""

REPLY_KEYS = frozenset({"output", "context", "metadata"})
"""Keys of a target's reply that a path may begin with."""

TOO_DEEP = "its JSON is nested too deeply"


async def transformed(transform: Transform, context: AssertionContext) -> AssertionContext | Failure:
    """Return the context with the transformed output; a value that is not text becomes JSON text."""
    value = await value_of(transform, context)
    if isinstance(value, Failure):
        return value
    empty = value is None or (isinstance(value, str) and not value.strip())
    answer = (context.output or "").strip()
    if empty and answer and not context.allow_empty:  # negative checks would pass on an empty output
        made = "nothing" if value is None else "an empty text"
        message = f"{_title(transform)} returned {made} for the answer {shorten(answer, _SHOWN_ANSWER)!r}"
        return Failure("empty-output", f"{message}; `allow_empty: true` of the target would accept it")
    text = value
    if value is not None and not isinstance(value, str):
        try:
            text = json.dumps(
                value,
                ensure_ascii=False,
                default=str,
                separators=(",", ":") if transform.kind in JAVASCRIPT else None,
            )
        except (RecursionError, ValueError) as error:  # a user's function may return a cyclic value
            reason = TOO_DEEP if isinstance(error, RecursionError) else str(error)
            message = f"the result of the transform {transform.expression!r} is not valid JSON: {reason}"
            return Failure("transform-failed", message)
    # the value that user code returned is passed on to graders; what a path or an expression selects stays text
    parsed = None if value is text or transform.kind not in CODE else json.loads(text or "")
    answered = context.output if context.answered is None else context.answered
    return replace(context, output=text, answered=answered, value=parsed)


def _title(transform: Transform) -> str:
    """Return the transform's name in messages: its expression, or its file name without directories."""
    match transform.kind:
        case "javascript-file":
            return f"the transform {Path(transform.file or '').name}"
        case "function":
            return f"the transform {transform.expression}"
    return f"the transform {transform.expression!r}"


async def value_of(transform: Transform, context: AssertionContext) -> Any | Failure:
    """Return the result of the transform, unchanged, or a Failure."""
    try:
        if transform.kind in CODE:
            return await (_in_javascript if transform.kind in JAVASCRIPT else _called)(transform, context)
        if transform.kind == "path":
            return _at_path(transform.expression, context)
        return _evaluated(transform.expression, context)
    except RecursionError:
        return Failure("transform-failed", f"the transform {transform.expression!r} failed: {TOO_DEEP}")
    except (RenderError, ValueError, LookupError) as error:
        return Failure("transform-failed", f"the transform {transform.expression!r} failed: {error}")


def _at_path(text: str, context: AssertionContext) -> Any:
    """Return the value at a path of the answer's JSON, else of the reply with `output`, `context` and `metadata`."""
    path = json_path.parse(text)
    like: Json = None if not path.steps else [] if isinstance(path.steps[0], int) else {}
    answer = _json_of(context.output, like)
    found = json_path.Missing("the answer is not JSON") if answer is None else json_path.read(path, answer[0])
    if not isinstance(found, json_path.Missing):
        return found
    if not path.steps or path.steps[0] not in REPLY_KEYS:
        raise LookupError(found.message)
    known = {"output": context.output, "context": context_json(context.context), "metadata": context.response_metadata}
    in_reply = json_path.read(path, {key: value for key, value in known.items() if value})
    if isinstance(in_reply, json_path.Missing):
        raise LookupError(f"{found.message}; in the target's reply, {in_reply.message}")  # noqa: TRY004  # a missing value is not a wrong type
    return in_reply


def _json_of(output: str | None, like: Json = None) -> tuple[Any] | None:
    """Return the JSON value in an answer, as `json-match` reads it, in a tuple; None if none exists."""
    try:
        value = json_in(output or "", like)
    except UnsearchableError as error:
        raise ValueError(f"the answer contains {error}") from None
    if isinstance(value, NotJson) and "nested too deep" in value.reason:
        raise ValueError(value.reason)
    return None if isinstance(value, NotJson) else (value,)


def _evaluated(expression: str, context: AssertionContext) -> Any:
    try:
        parsed = _json_of(context.output)
    except (RecursionError, ValueError):
        parsed = None  # nested too deeply, so that `json` is None
    names = {
        "context": context_json(context.context),
        **context.vars,
        "output": context.output,
        "json": None if parsed is None else parsed[0],
        "metadata": {**context.response_metadata, **context.metadata},
    }
    return evaluate(expression, Scope(names, context.env))


async def _in_javascript(transform: Transform, context: AssertionContext) -> Any | Failure:
    """Call a JavaScript transform with the output and promptfoo's context."""
    if transform.kind == "javascript":
        source = f"expression:output, context:{transform.expression}"
    else:
        source = f"call:{transform.expression}:{transform.file}"
    given = [context.graded_value, promptfoo_context(context)]
    found = await context.services.javascript.call(source, {"arguments": given}, math.inf)
    if isinstance(found, Failure):
        code = "transform-failed" if found.code in _OF_ASSERTIONS else found.code
        return Failure(code, f"{_title(transform)} {found.message}")
    return found


async def _called(transform: Transform, context: AssertionContext) -> Any | Failure:
    offered = {
        "output": context.graded_value,
        "vars": context.vars,
        "metadata": {**context.response_metadata, **context.metadata},
    }
    call = CodeCall(
        "grading",
        "agentv.user_code.workers.adapters:by_name",
        {"offered": offered, "single": "output", "context_as": ("context",), "context": wire_of_context(context)},
        code="transform-failed",
        what=_title(transform),
        function=transform.expression,
        file=transform.file,
        env=dict(context.env) or None,
    )
    found = await context.services.executor.python(call)
    if isinstance(found, Raised):
        return replace(found, code="transform-failed") if found.code == "bad-result" else found
    return found.value
