"""Recorded answers: looked up before a call is made, and recorded before anything is done with them.

The key of a call covers the target and its settings, the request, and the sample. Workers, timeouts, attempts and the
environment are not part of it; nor are assertions, so that an answer can be regraded (SPEC sections 10 and 13).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable
from time import monotonic

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from agentv.model.suite.suite import TargetSpec
from agentv.model.values.message import portable
from agentv.model.values.response import Failure, TargetResponse
from agentv.model.values.trace_summary import completed
from agentv.ports import AnswerLookup, Call, Target, TargetRequest

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode

Given = TargetResponse | Failure | Awaitable[TargetResponse | Failure]
Unanswered = Callable[[Call], Failure]
"""Function that returns the failure of a call without a stored answer when no calls may be made."""


def call_key(spec: TargetSpec, request: TargetRequest) -> str:
    """Return the SHA-256, in hex, of what determines an answer, without texts that are new for each call (`nonces`).

    Attached files enter by their content and by their paths relative to the repository root, so that the key is the
    same in every checkout.
    """
    facts = (
        spec.name,
        spec.fingerprint,
        request.suite,
        request.case_id,
        request.prompt_id,
        request.turn,
        request.sample,
        portable(request.messages, request.root),
        request.vars,
        request.metadata,
        request.temperature,
        request.schema,
    )
    if request.workspace_key:
        facts = (*facts, request.workspace_key)  # type: ignore[assignment]  # a longer tuple
    try:
        written = _encode(facts)
    except (UnicodeEncodeError, RecursionError):  # a lone surrogate or deep nesting in a user's values
        written = repr(facts).encode(errors="surrogatepass")
    for number, nonce in enumerate(request.nonces):
        written = written.replace(nonce.encode(), b"\x00%d" % number)
        if nonce.upper().encode() in written:  # in a judge's earlier reply, which is recorded in lower case
            written = written.replace(nonce.upper().encode(), b"\x00%d" % number)
    return hashlib.sha256(written).hexdigest()


class RecordedCall:
    """One call of a target: answered from a record, or made and recorded before anything is done with the answer.

    Args:
        spec: spec of the target that is called.
        request: the request.
        store: the store of answers.
        unanswered: returns the failure of a call without a recorded answer; None: call the target instead.
    """

    __slots__ = ("_began", "_call", "_store", "_unanswered")

    def __init__(
        self, spec: TargetSpec, request: TargetRequest, store: AnswerLookup, unanswered: Unanswered | None = None
    ) -> None:
        self._call = Call(call_key(spec, request), spec.name, request)
        self._store = store
        self._unanswered = unanswered
        self._began = 0.0

    async def found(self) -> TargetResponse | Failure | None:
        """Return the recorded answer or a Failure, or None if the call must be made and passed to `record`."""
        call = self._call
        recorded = self._store.stored_answer(call)
        if recorded is not None and not isinstance(recorded, TargetResponse):
            recorded = await recorded
        if recorded is not None:
            if recorded.earlier:
                self._store.keep(call, recorded)  # so that this run can be resumed and regraded on its own
            return _with_nonces(recorded, call.key, call.request)
        if self._unanswered is not None:
            return self._unanswered(call)
        self.begin()
        return None

    def begin(self) -> None:
        """Start timing the call."""
        self._began = monotonic()

    async def record(self, given: Given) -> TargetResponse | Failure:
        """Await the call's outcome and return it, recording an answer but not a Failure. It was timed from `begin`."""
        answer = given if isinstance(given, TargetResponse | Failure) else await given
        if isinstance(answer, TargetResponse):
            if answer.trace is not None:
                answer = completed(answer)
            call, timed = self._call, answer
            if answer.duration_ms is None:
                timed = replace(answer, duration_ms=(monotonic() - self._began) * 1000)
            if call.request.nonces:
                timed = _with_placeholders(timed, call.key, call.request)
            self._store.keep(call, timed)
        return answer


def no_answer(_call: Call) -> Failure:
    """Return the failure of a trial for which the run to regrade has no usable answer."""
    why = "the case or its target changed, or the answer contained a secret"
    return Failure("no-kept-answer", f"the run to regrade has no usable answer to this: {why}")


class RecordedTarget(Struct):
    """A target whose answers are recorded; used for judges."""

    wrapped: Target
    spec: TargetSpec
    store: AnswerLookup
    unanswered: Unanswered | None = None

    async def answer(self, request: TargetRequest) -> TargetResponse | Failure:
        """Return the recorded answer, or call the target.

        An answer of an earlier run costs nothing again; an unknown cost stays unknown.
        """
        call = RecordedCall(self.spec, request, self.store, self.unanswered)
        answer = await call.found()
        if answer is None:
            answer = await call.record(self.wrapped.answer(request))
        if isinstance(answer, Failure) or not answer.earlier:
            return answer
        return replace(answer, token_usage=None, cost_usd=None if answer.cost_usd is None else 0.0)

    async def close(self) -> None:
        """Close the target."""
        await self.wrapped.close()


def _with_placeholders(answer: TargetResponse, key: str, request: TargetRequest) -> TargetResponse:
    """Return the answer with placeholders for the nonces, so that it fits a later request with other nonces."""
    output = answer.output
    if output is None:
        return answer
    for number, nonce in enumerate(request.nonces):
        output = re.sub(re.escape(nonce), _placeholder(key, number), output, flags=re.IGNORECASE)
    return replace(answer, output=output)


def _with_nonces(answer: TargetResponse, key: str, request: TargetRequest) -> TargetResponse:
    output = answer.output
    if not request.nonces or output is None:
        return answer
    for number, nonce in enumerate(request.nonces):
        output = output.replace(_placeholder(key, number), nonce)
    return replace(answer, output=output)


def _placeholder(key: str, number: int) -> str:
    """Return the placeholder of a nonce, derived from the call's own hash so that no text of the call contains it."""
    return f"[nonce-{number}-{key[:32]}]"
