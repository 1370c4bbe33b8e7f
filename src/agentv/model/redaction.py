"""Secrets never reach a file, a log or a report (SPEC section 6): their values are taken out of every text."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, cast
from urllib.parse import quote, quote_plus

from msgspec.structs import replace

from agentv.model.run.grade import AskedJudge, Grade
from agentv.model.run.trial import Score, Trial, TrialResult
from agentv.model.values.message import (
    Block,
    Content,
    DocumentBlock,
    FileBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolCall,
)
from agentv.model.values.response import Attempt, CallFailure, Failure, TargetResponse
from agentv.model.values.retrieved import RetrievedText
from agentv.model.values.values import Json, JsonObject, lazy_pattern

if TYPE_CHECKING:
    from agentv.errors import Diagnostic


SHORTEST = 8
"""Characters below which a value is not searched for: it would be found in every other word."""

_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD = 11
_DASHED = ("lm-studio", "no-key-required", "not-needed", "not-required", "not-used", "your-api-key")
_PLACEHOLDERS = frozenset(
    {*_DASHED, *(one.replace("-", "_") for one in _DASHED), "none-needed", "not-a-key", "placeholder"}
)
"""What people write where a server wants no key, beyond single words."""


def is_searched(value: str) -> bool:
    """Whether a secret is distinct from ordinary text: eight characters or more, and no plain word (`localhost`)."""
    text = value.strip()
    return (
        len(text) >= SHORTEST
        and len(set(text)) > 1
        and (len(text) > _LONGEST_WORD or _WORD.fullmatch(text) is None)
        and text.lower() not in _PLACEHOLDERS
    )


def forms_of(value: str) -> set[str]:
    """How a value reads plain, escaped for JSON, in base64, in hex and in a URL."""
    bare = value.strip()
    data = bare.encode(errors="replace")
    forms = {value, bare, data.hex(), data.hex().upper(), quote_plus(data)}
    forms |= {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in (value, bare) for ascii_only in (False, True)}
    forms.add(json.dumps(bare)[1:-1].replace("/", "\\/"))  # as PHP escapes JSON
    for percent in (quote(data, safe=""), quote(data)):
        forms |= {percent, _PERCENT.sub(lambda found: found[0].lower(), percent)}
    for offset in range(3):
        # the characters of base64 that these bytes alone decide, `offset` bytes behind a multiple of three
        encoded = b64encode(b"\0" * offset + data).decode()
        inside = encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]
        forms |= {inside, inside.translate(_FOR_URLS)}
    return forms


_PERCENT = lazy_pattern(r"%[0-9A-F]{2}")
_FOR_URLS = str.maketrans("+/", "-_")


REDACTED = "[redacted]"


class Redactor:
    """Removes the values of secrets from text; does nothing without secrets.

    Args:
        secrets: the values. One that looks like ordinary text is left alone (`secret_forms.is_searched`); the others
            are found as a whole, in the forms of `secret_forms.forms_of`.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values = frozenset(secret for secret in secrets if is_searched(secret))

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._values)

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """Made when the first text comes: most commands look at none. Longest first, as one may hold another."""
        return tuple(sorted(set().union(*map(forms_of, self._values)), key=len, reverse=True))

    @cached_property
    def _in_json(self) -> frozenset[bytes]:
        forms = {*self._forms, *(json.dumps(form, ensure_ascii=False)[1:-1] for form in self._forms)}
        return frozenset(form.encode(errors="surrogatepass") for form in forms)

    def redact(self, text: str) -> str:
        """The text with `[redacted]` in the place of every secret."""
        for form in self._forms if len(text) >= SHORTEST else ():
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def stretches(self, text: str) -> list[tuple[int, int]]:
        """Where secrets are in a text: first and last letter."""
        found = [form for form in self._forms if form in text]
        return [one.span() for one in re.finditer("|".join(map(re.escape, found)), text)] if found else []

    def found_in(self, line: bytes) -> bool:
        """Whether a secret is in this JSON text."""
        return any(form in line for form in self._in_json)

    def redact_diagnostic(self, found: Diagnostic) -> Diagnostic:
        """What is wrong in a file, without the secrets that it may quote. The file's own path stays."""
        notes = tuple(map(self.redact, found.notes))
        return replace(found, message=self.redact(found.message), hint=self._maybe(found.hint), notes=notes)

    def redact_answer(self, answer: TargetResponse) -> TargetResponse:
        """The answer of a target without secrets."""
        return replace(
            answer,
            output=self._maybe(answer.output),
            messages=self._messages(answer.messages),
            finish_reason=self._maybe(answer.finish_reason),
            attempts=self._attempts(answer.attempts),
            metadata=self._object(answer.metadata),
            context=self._context(answer.context),
            ignored=tuple(map(self.redact, answer.ignored)),
            thoughts=self.redact(answer.thoughts),
        )

    def redact_result(self, result: TrialResult) -> TrialResult:
        """A finished trial without secrets in anything that is written or shown of it."""
        output = self._maybe(result.output)
        scores = tuple(self._score(score) for score in result.scores)
        if output != result.output:  # so that places in it have moved
            scores = tuple(replace(score, grade=score.grade.without_spans()) for score in scores)
        return replace(
            result,
            trial=self._trial(result.trial),
            output=output,
            input=self._messages(result.input),
            scores=scores,
            error=self._failure(result.error),
            messages=self._messages(result.messages),
            metadata=self._object(result.metadata),
            context=self._context(result.context),
            response_metadata=self._object(result.response_metadata),
            turns=tuple(self.redact_answer(answer) for answer in result.turns),
            retries=self._attempts(result.retries),
            notes=tuple(map(self.redact, result.notes)),
            thoughts=self.redact(result.thoughts),
            finish_reason=self._maybe(result.finish_reason),
        )

    def redact_json(self, value: Json) -> Json:
        """Plain data with every text in it redacted, keys included; a number that is a secret becomes text."""
        if not self._values or value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact_json(inner) for key, inner in value.items()}
        if isinstance(value, Sequence):
            return [self.redact_json(inner) for inner in value]
        return REDACTED if self.redact(str(value)) == REDACTED else value

    def _context(self, context: tuple[RetrievedText, ...]) -> tuple[RetrievedText, ...]:
        if not self._values:
            return context
        return tuple(
            replace(
                one, text=self.redact(one.text), source=self._maybe(one.source), metadata=self._object(one.metadata)
            )
            for one in context
        )

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.redact(text)

    def _object(self, value: JsonObject) -> JsonObject:
        return cast("JsonObject", self.redact_json(value))

    def _trial(self, trial: Trial) -> Trial:
        case = trial.case
        return replace(
            trial,
            suite=replace(trial.suite, name=self.redact(trial.suite.name), path=self.redact(trial.suite.path)),
            case=replace(
                case,
                id=self.redact(case.id),
                vars=self._object(case.vars),
                prompt_id=self._maybe(case.prompt_id),
                cluster_key=self._maybe(case.cluster_key),
                cluster=self._maybe(case.cluster),
                metadata=self._object(case.metadata),
                tags=tuple(self.redact(tag) for tag in case.tags),
                conversation_id=self._maybe(case.conversation_id),
                expected_output=self._messages(case.expected_output),
                turns=tuple(replace(turn, expected_output=self._messages(turn.expected_output)) for turn in case.turns),
            ),
            target=replace(trial.target, name=self.redact(trial.target.name)),
            variant=trial.variant and replace(trial.variant, name=self.redact(trial.variant.name)),
        )

    def _score(self, score: Score) -> Score:
        entry = score.entry
        settings = replace(entry.settings, name=self.redact(entry.name))
        span = entry.span and replace(entry.span, file=self.redact(entry.span.file))
        return replace(score, entry=replace(entry, settings=settings, span=span), grade=self.redact_grade(score.grade))

    def _asked(self, asked: AskedJudge | None) -> AskedJudge | None:
        """The judge that was asked. A rubric with a secret is known by the hash of what is shown of it."""
        if asked is None:
            return None
        rubric = self.redact(asked.rubric)
        digest = asked.rubric_sha256 if rubric == asked.rubric else sha256(rubric.encode()).hexdigest()
        judge, model = self.redact(asked.judge), self.redact(asked.model)
        return replace(asked, judge=judge, model=model, rubric=rubric, rubric_sha256=digest)

    def redact_grade(self, grade: Grade) -> Grade:
        """What an assertion says of an answer, without secrets."""
        return replace(
            grade,
            checks=tuple(
                replace(check, text=self.redact(check.text), evidence=self._maybe(check.evidence))
                for check in grade.checks
            ),
            reason=self._maybe(grade.reason),
            details=self._object(grade.details),
            error=self._failure(grade.error),
            asked_judge=self._asked(grade.asked_judge),
        )

    def _failure(self, failure: Failure | None) -> Failure | None:
        if isinstance(failure, CallFailure):
            failure = replace(failure, attempts=self._attempts(failure.attempts))
        return failure and replace(failure, message=self.redact(failure.message))

    def _attempts(self, attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
        return tuple(replace(one, message=self.redact(one.message)) for one in attempts)

    def _messages(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            replace(
                message,
                content=self._content(message.content),
                name=self._maybe(message.name),
                tool_calls=tuple(self._call(call) for call in message.tool_calls),
            )
            for message in messages
        )

    def _content(self, content: Content) -> Content:
        if isinstance(content, str):
            return self.redact(content)
        return tuple(self._block(block) for block in content) if isinstance(content, tuple) else self._object(content)

    def _block(self, block: Block) -> Block:
        if isinstance(block, TextBlock):
            return TextBlock(self.redact(block.value))
        value, path = self.redact(block.value), self._maybe(block.path)
        if isinstance(block, ImageBlock):
            return replace(block, value=value, path=path)
        if isinstance(block, DocumentBlock):
            return replace(block, value=value, path=path or "", media_type=self.redact(block.media_type))
        return FileBlock(value, path or "", self.redact(block.text))

    def _call(self, call: ToolCall) -> ToolCall:
        name, arguments = self.redact(call.name), self._object(call.arguments)
        output, native_name = self._maybe(call.output), self._maybe(call.native_name)
        return replace(
            call, name=name, arguments=arguments, id=self._maybe(call.id), output=output, native_name=native_name
        )
