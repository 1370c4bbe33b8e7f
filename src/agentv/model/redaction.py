"""Redaction: the values of secrets never reach a file, a log or a report (SPEC section 6)."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import quote, quote_plus

from msgspec import Struct
from msgspec.structs import replace

from agentv.model.run.grade import AskedJudge
from agentv.model.run.trial import Score, TrialResult
from agentv.model.values.values import Json, lazy_pattern

if TYPE_CHECKING:
    from agentv.errors import Diagnostic


SHORTEST = 8
"""Minimum characters of a value that is redacted: shorter ones occur in ordinary text."""

_WORD = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_LONGEST_WORD = 11
_DASHED = ("lm-studio", "no-key-required", "not-needed", "not-required", "not-used", "your-api-key")
_PLACEHOLDERS = frozenset(
    {*_DASHED, *(one.replace("-", "_") for one in _DASHED), "none-needed", "not-a-key", "placeholder"}
)
"""Dummy keys for servers that need none; single words are recognized by `_WORD`."""


def is_searched(value: str) -> bool:
    """Whether a secret is redacted: at least eight characters, and not a plain word such as `localhost`."""
    text = value.strip()
    return (
        len(text) >= SHORTEST
        and len(set(text)) > 1
        and (len(text) > _LONGEST_WORD or _WORD.fullmatch(text) is None)
        and text.lower() not in _PLACEHOLDERS
    )


def forms_of(value: str) -> set[str]:
    """Return the forms in which a value may appear: plain, escaped for JSON, in base64, in hex and in a URL."""
    bare = value.strip()
    data = bare.encode(errors="replace")
    forms = {value, bare, data.hex(), data.hex().upper(), quote_plus(data)}
    forms |= {json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in (value, bare) for ascii_only in (False, True)}
    forms.add(json.dumps(bare)[1:-1].replace("/", "\\/"))  # as PHP escapes JSON
    for percent in (quote(data, safe=""), quote(data)):
        forms |= {percent, _PERCENT.sub(lambda found: found[0].lower(), percent)}
    for offset in range(3):
        # the base64 characters that depend on these bytes only, if they begin `offset` bytes after a multiple of three
        encoded = b64encode(b"\0" * offset + data).decode()
        inside = encoded[math.ceil(offset * 8 / 6) : (offset + len(data)) * 8 // 6]
        forms |= {inside, inside.translate(_FOR_URLS)}
    return forms


_PERCENT = lazy_pattern(r"%[0-9A-F]{2}")
_FOR_URLS = str.maketrans("+/", "-_")


REDACTED = "[redacted]"

_NOT_REDACTED = frozenset({"code", "trace", "logs"})
"""Fields that are not redacted: `code` is a word of the program, and the work of agents is redacted when stored."""

_CASE_FIELDS = (
    *("id", "vars", "prompt_id", "cluster_key", "cluster", "metadata", "tags", "conversation_id", "expected_output"),
)
_RESULT_FIELDS = (
    *("output", "input", "error", "messages", "metadata", "context", "response_metadata", "turns", "retries", "notes"),
    *("thoughts", "finish_reason"),
)

T = TypeVar("T")


class Redactor:
    """Replaces the values of secrets in text by `[redacted]`; does nothing without secrets.

    Args:
        secrets: the values. Those that look like ordinary text are ignored (`is_searched`); the others are searched for
            in all forms of `forms_of`.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._values = frozenset(secret for secret in secrets if is_searched(secret))

    def __bool__(self) -> bool:
        """Whether there are secrets to redact."""
        return bool(self._values)

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        """All forms of the secrets, longest first because one may contain another; most commands never need them."""
        return tuple(sorted(set().union(*map(forms_of, self._values)), key=len, reverse=True))

    @cached_property
    def _in_json(self) -> frozenset[bytes]:
        forms = {*self._forms, *(json.dumps(form, ensure_ascii=False)[1:-1] for form in self._forms)}
        return frozenset(form.encode(errors="surrogatepass") for form in forms)

    def redact(self, text: str) -> str:
        """Return the text with every secret replaced by `[redacted]`."""
        for form in self._forms if len(text) >= SHORTEST else ():
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def spans_in(self, text: str) -> list[tuple[int, int]]:
        """Return the positions of secrets in a text as (start, end), where end is exclusive."""
        found = [form for form in self._forms if form in text]
        return [one.span() for one in re.finditer("|".join(map(re.escape, found)), text)] if found else []

    def found_in(self, line: bytes) -> bool:
        """Whether a line of JSON contains a secret."""
        return any(form in line for form in self._in_json)

    def redact_diagnostic(self, found: Diagnostic) -> Diagnostic:
        """Return a diagnostic without the secrets that it may quote from a file. The file's path is kept."""
        notes = tuple(map(self.redact, found.notes))
        return replace(found, message=self.redact(found.message), hint=self.redacted(found.hint), notes=notes)

    def redacted(self, value: T) -> T:
        """Return a value with all its texts redacted, except in the fields of `_NOT_REDACTED`.

        The value is a struct of the model, a tuple, plain data or a string.
        """
        made: Any = value
        if not self._values:
            return value
        if isinstance(value, tuple):
            made = tuple(map(self.redacted, value))
        elif isinstance(value, Struct):
            fields = [name for name in value.__struct_fields__ if name not in _NOT_REDACTED]
            made = replace(value, **{name: self.redacted(getattr(value, name)) for name in fields})
            if isinstance(made, AskedJudge) and made.rubric != value.rubric:  # type: ignore[attr-defined]  # as `made`
                made = replace(made, rubric_sha256=sha256(made.rubric.encode()).hexdigest())
        elif isinstance(value, str | list | Mapping):
            made = self.redact_json(value)
        return cast("T", made)

    def redact_result(self, result: TrialResult) -> TrialResult:
        """Return a finished trial without secrets in anything that is written or shown."""
        trial, case = result.trial, result.trial.case
        turns = tuple(replace(turn, expected_output=self.redacted(turn.expected_output)) for turn in case.turns)
        suite = replace(trial.suite, name=self.redact(trial.suite.name), path=self.redact(trial.suite.path))
        case = replace(case, turns=turns, **{name: self.redacted(getattr(case, name)) for name in _CASE_FIELDS})
        target = replace(trial.target, name=self.redact(trial.target.name))
        variant = trial.variant and replace(trial.variant, name=self.redact(trial.variant.name))
        made = replace(
            result,
            trial=replace(trial, suite=suite, case=case, target=target, variant=variant),
            scores=tuple(map(self._score, result.scores)),
            **{name: self.redacted(getattr(result, name)) for name in _RESULT_FIELDS},
        )
        if made.output == result.output:
            return made
        # redaction moved the positions in the output
        return replace(made, scores=tuple(replace(one, grade=one.grade.without_spans()) for one in made.scores))

    def redact_json(self, value: Json) -> Json:
        """Return plain data with all texts redacted, including keys; a number that is a secret becomes text."""
        if not self._values or value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, Mapping):
            return {self.redact(str(key)): self.redact_json(inner) for key, inner in value.items()}
        if isinstance(value, Sequence):
            return [self.redact_json(inner) for inner in value]
        return REDACTED if self.redact(str(value)) == REDACTED else value

    def _score(self, score: Score) -> Score:
        entry = score.entry
        settings = replace(entry.settings, name=self.redact(entry.name))
        entry = replace(entry, settings=settings, span=self.redacted(entry.span))
        return replace(score, entry=entry, grade=self.redacted(score.grade))
