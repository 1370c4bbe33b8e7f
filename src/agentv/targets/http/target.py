"""The `http` target, which calls a server and can convert its reply to an answer with `transform`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from msgspec.structs import replace

from agentv.model.suite.assertion import Transform
from agentv.model.suite.suite import TargetSpec
from agentv.model.values import json_path
from agentv.model.values.response import CallFailure, Failure, TargetResponse
from agentv.model.values.values import Json, lazy_pattern
from agentv.ports import CodeCall, Executor, Raised, Target, TargetRequest
from agentv.registry.fields import CallTimeTemplate, Doc, Issue, Nonempty, Text
from agentv.registry.gateway_options import Otel
from agentv.registry.types import Calls, ProviderSettings
from agentv.targets.http.answers import decoded, from_reply, from_value, parsed
from agentv.targets.http.connection import Connection, HttpReply
from agentv.targets.http.failures import failure_of, has_user, is_compressed, url_issues
from agentv.targets.promptfoo import JavaScriptProcesses, context_of, from_provider
from agentv.templating import (
    JINJA,
    Language,
    RenderError,
    Scope,
    evaluate,
    has_placeholder,
    render,
    render_text,
    undeclared,
)
from agentv.user_code.excerpts import head

DEFAULT_BODY: Json = {"prompt": "{{ prompt }}"}
_BODILESS = frozenset({"GET", "DELETE"})


@dataclass(frozen=True, slots=True)
class Http(ProviderSettings):
    """Calls an HTTP server."""

    calls: ClassVar[Calls] = "any-server"
    example: ClassVar[str | None] = "https://my-agent.example/ask"
    short: ClassVar[str | None] = "url"

    url: Annotated[Text, Nonempty(), Doc("URL to call")]
    method: Annotated[Literal["GET", "POST", "PUT", "PATCH", "DELETE"], Doc("the HTTP method")] = "POST"
    headers: Annotated[
        Mapping[str, Text],
        CallTimeTemplate(),
        Doc("headers; templates over `prompt`, `messages`, `vars`, `env`, `workspace_path`, …"),
    ] = field(default_factory=dict)
    body: Annotated[
        Json, CallTimeTemplate(), Doc('JSON or text, a template like `headers`; default: {"prompt": …}')
    ] = None
    template: Annotated[
        Literal["jinja", "nunjucks"], Doc("the language of the placeholders in `headers` and `body`")
    ] = "jinja"
    output: Annotated[Text | None, Doc("path of the answer in a JSON response: `$.choices[0].message.content`")] = None

    context: Annotated[
        Text | None, Doc("path of the retrieved texts in a JSON response, for `context-*`: `$.documents`")
    ] = None
    metadata: Annotated[Text | None, Doc("path of an object in a JSON response that is kept with the answer")] = None
    transform: Annotated[
        Transform | None,
        Doc("makes the answer of the response: $.path, an expression over `json` and `text`, javascript: …, or a file"),
    ] = None

    otel: Otel = False

    def validate(self) -> Iterable[Issue]:
        """Report invalid URLs, paths and templates."""
        yield from url_issues(self.url, "url")
        if has_user(self.url) and any(name.strip().lower() == "authorization" for name in self.headers):
            message = "'url' contains a user, and 'headers' has 'Authorization'"
            yield Issue(("url",), message, hint="keep one of them")
        if self.output is not None and self.transform is not None:
            yield Issue(("transform",), "'output' and 'transform' both make the answer; keep one of them")
        yield from self._path_issues()
        for path, text in [*_texts(self.headers, ("headers",)), *_texts(self.body, ("body",))]:
            try:
                undeclared(text, self.language)
            except RenderError as error:
                yield Issue(path, error.message, error.code)

    @property
    def language(self) -> Language:
        """The template language. In Nunjucks, a missing variable renders as empty text."""
        return Language(nunjucks=True, missing_empty=True) if self.template == "nunjucks" else JINJA

    def _path_issues(self) -> Iterator[Issue]:
        for name, path in (("output", self.output), ("context", self.context), ("metadata", self.metadata)):
            if path is None:
                continue
            try:
                json_path.parse(path)
            except ValueError as error:
                yield Issue((name,), str(error), "bad-path")
            if name != "output" and self.transform is not None:
                message = f"'transform' makes the whole answer, so '{name}' is never used"
                yield Issue((name,), message, hint=f"return an object with 'output' and '{name}' from the transform")

    def endpoint(self) -> str | None:
        """Return an id of the server. All its paths share a rate limit."""
        parts = urlsplit(self.url)
        return f"http {parts.scheme}://{parts.hostname}:{parts.port or parts.scheme}"

    def connect(self, spec: TargetSpec, executor: Executor) -> Target:
        """Return a target that opens connections on demand and reuses them."""
        import aiohttp  # noqa: F401  # takes 0.25 s, which must not count as time of the first answer

        transform = ResponseTransform(self.transform, executor) if self.transform is not None else None
        return _Http(self, frozenset(spec.retry.status_codes), transform)


def _texts(value: Json, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and text of every text in a structure that contains a placeholder."""
    if isinstance(value, str):
        if has_placeholder(value):
            yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*path, key))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index))


def _rendered(value: Json, scope: Scope) -> Json:
    """Return the structure with its texts rendered. Inserted values cannot change the structure."""
    if isinstance(value, str):
        return render(value, scope) if has_placeholder(value) else value
    if isinstance(value, Mapping):
        return {key: _rendered(inner, scope) for key, inner in value.items()}
    return [_rendered(inner, scope) for inner in value] if isinstance(value, list | tuple) else value


_PLACEHOLDER = lazy_pattern(r"(\$?\{\{.*?\}\})", re.DOTALL)
_STRINGS = lazy_pattern(r'\\.|"', re.DOTALL)


def _rendered_json(text: str, scope: Scope) -> str:
    """Render a JSON text. A value inserted into a string is escaped, so that it cannot end the string."""
    if "{%" in text:
        return render_text(text, scope)
    parts, inside = [], False
    for place, piece in enumerate(_PLACEHOLDER.split(text)):
        if place % 2 == 0:
            inside ^= _STRINGS.findall(piece).count('"') % 2 == 1
            parts.append(piece)
        else:
            value = render_text(piece, scope)
            parts.append(json.dumps(value, ensure_ascii=False)[1:-1] if inside else value)
    return "".join(parts)


class _Http:
    def __init__(self, settings: Http, retryable: frozenset[int], transform: ResponseTransform | None) -> None:
        self._settings = settings
        self._transform = transform
        self._body = DEFAULT_BODY if settings.body is None and settings.method not in _BODILESS else settings.body
        paths = {"output": settings.output, "context": settings.context, "metadata": settings.metadata}
        self._other_paths = {name: json_path.parse(path) for name, path in paths.items() if path is not None}
        self._path = self._other_paths.pop("output", None)
        self._retryable = retryable
        self._connection = Connection()
        self._answered = False

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        names: dict[str, Json] = {
            "prompt": request.prompt,
            "messages": [message.as_json() for message in request.messages],
            "case_id": request.case_id,
            "metadata": request.metadata,
            "workspace_path": request.workspace_path,
        }
        scope = Scope(request.vars, request.env, names, language=self._settings.language)
        try:
            headers, body = self._headers(scope), self._content(scope)
            if self._settings.otel and "TRACEPARENT" in request.env:
                headers["traceparent"] = request.env["TRACEPARENT"]
        except RenderError as error:
            return Failure(error.code, error.message)
        for name, value in headers.items():
            if not value.isprintable():
                return Failure(
                    "bad-header", f"the value of header '{name}' contains a line break or a control character"
                )
        reply = await self._connection.ask(
            self._settings.method, self._settings.url, headers=headers, body=body, timeout_s=request.timeout_s
        )
        if isinstance(reply, Failure):
            return reply
        if not 200 <= reply.status < 300 or is_compressed(reply.headers):  # redirects are not followed
            return self._refused(reply)
        self._answered = True
        return await self._read(request, reply)

    def _headers(self, scope: Scope) -> dict[str, str]:
        kind = "text/plain; charset=utf-8" if isinstance(self._body, str) else "application/json"
        given = {name: render_text(value, scope) for name, value in self._settings.headers.items()}
        if self._body is None or any(name.lower() == "content-type" for name in given):
            return given
        return {"Content-Type": kind, **given}

    def _content(self, scope: Scope) -> bytes | None:
        if self._body is None:
            return None
        if isinstance(self._body, str):
            render_body = _rendered_json if self._body.lstrip().startswith(("{", "[")) else render_text
            return render_body(self._body, scope).encode(errors="replace")
        try:
            return json.dumps(_rendered(self._body, scope), allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise RenderError("bad-body", f"the body cannot be written as JSON: {error}") from None

    async def _read(self, request: TargetRequest, reply: HttpReply) -> TargetResponse | Failure:
        text = decoded(reply.body, reply.headers.get("content-type", ""))
        if isinstance(text, Failure):
            return text
        if self._transform is not None:
            return await self._transform.answer(request, reply, text, parsed(text))
        is_list = self._path is None and not self._other_paths and text.lstrip().startswith("[")
        value = text if is_list else parsed(text)  # a list is the answer itself, as text
        other_keys: dict[str, Json] = {}
        for name, path in self._other_paths.items():
            one = _value_at(path, value, text)
            if isinstance(one, Failure):
                return one
            other_keys[name] = one
        if self._path is not None:
            found = _value_at(self._path, value, text)
            return found if isinstance(found, Failure) else from_value(found, other_keys)
        kind = reply.headers.get("content-type", "").lower()
        # proxies and servers send HTML error pages with a successful status
        if value is text and "html" in kind and text.lstrip()[:9].lower().startswith(("<!doctype", "<html")):
            message = f"the server sent an HTML page: {head(reply.body)}"
            return Failure("bad-answer", f"{message}; if the page is the answer, write 'transform: text'")
        return from_value(None, other_keys) if value in (None, {}) else from_reply(text, value, other_keys)

    def _refused(self, reply: HttpReply) -> CallFailure:
        """Return the failure of a reply. It never stops a target that has answered before: its key is valid."""
        text = decoded(reply.body, reply.headers.get("content-type", ""))
        body = text if isinstance(text, str) else reply.body.decode(errors="replace")
        failure = failure_of(reply.status, body, reply.headers, self._retryable, address="url")
        return replace(failure, stops=False) if self._answered and failure.stops else failure

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()
        if self._transform is not None:
            await self._transform.close()


def _value_at(path: json_path.JsonPath, value: Json, text: str) -> Json | Failure:
    """Return the value at a path of a response, or a Failure if it is missing or the response is not JSON."""
    if value is text:
        return Failure(
            "bad-answer", f"the response is not JSON, so {path.text} cannot be applied: {head(text.encode())}"
        )
    found = json_path.read(path, value)
    return Failure("bad-answer", found.message) if isinstance(found, json_path.Missing) else found


_ANSWER_KEYS = frozenset({"output", "error"})


class ResponseTransform:
    """Converts HTTP replies to answers with the `transform` of a target.

    Args:
        transform: an expression or a path over `json`, or code that takes `json`, `text` and `context`.
        executor: runs Python functions.
    """

    def __init__(self, transform: Transform, executor: Executor) -> None:
        self._transform = transform
        self._executor = executor
        self._processes = JavaScriptProcesses()

    async def answer(
        self, request: TargetRequest, reply: HttpReply, text: str, value: Json
    ) -> TargetResponse | Failure:
        """Return the answer. An object with `output` or `error` is promptfoo's response, and None an empty answer.

        Args:
            request: the request of the call.
            reply: the server's reply.
            text: its body as text.
            value: its body as JSON, or the text if it is not JSON.
        """
        response: Json = {"status": reply.status, "headers": dict(reply.headers), "data": value}
        context = {**context_of(request), "response": response}
        parsed = None if value is text else value
        try:
            found = await self._value({"json": parsed, "text": text, "context": context}, request.env)
        except (RenderError, LookupError, ValueError) as error:
            return Failure("bad-answer", f"the transform {self._transform.expression!r} failed: {error}")
        if isinstance(found, Failure):
            return found
        if found is None or isinstance(found, str) or (isinstance(found, Mapping) and _ANSWER_KEYS & found.keys()):
            return from_provider(found)
        return from_provider({"output": found})

    async def _value(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        match transform.kind:
            case "javascript" | "javascript-file":
                return await self._in_javascript(given, env)
            case "function":
                return await self._in_python(given, env)
            case "path":
                found = json_path.read(json_path.parse(transform.expression), given["json"])
                return Failure("bad-answer", found.message) if isinstance(found, json_path.Missing) else found
        return evaluate(transform.expression, Scope({"json": given["json"], "text": given["text"]}, env))

    async def _in_javascript(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        if transform.kind == "javascript":
            what, source = repr(transform.expression), f"expression:json, text, context:{transform.expression}"
        else:
            what, source = Path(transform.file or "").name, f"call:{transform.expression}:{transform.file}"
        found = await self._processes.call(env, source, {"arguments": list(given.values())})
        return Failure(found.code, f"the transform {what} {found.message}") if isinstance(found, Failure) else found

    async def _in_python(self, given: Mapping[str, Any], env: Mapping[str, str]) -> Any | Failure:
        transform = self._transform
        what = f"the transform {transform.expression}"
        call = CodeCall(
            "tested",
            "agentv.user_code.workers.adapters:by_name",
            {"offered": given, "single": "json"},
            code="target-raised",
            what=what,
            function=transform.expression,
            file=transform.file,
            env=env or None,
        )
        found = await self._executor.python(call)
        if isinstance(found, Raised):
            unsendable = found.code == "bad-result"
            return Failure("bad-answer", f"{what} did not return JSON: {found.cause}") if unsendable else found
        return found.value

    async def close(self) -> None:
        """End the JavaScript processes that were started."""
        await self._processes.close()
