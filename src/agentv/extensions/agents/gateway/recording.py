"""The model calls of one trial, which are recorded to a cassette completely or not at all, and replayed from it.

In a replay, the real agent runs and its model calls are answered from the recording. Requests are matched within their
conversation: the agent's own, a sub-agent's, or a side call such as one for a title. A request that equals a recorded
one gets its reply. Any other gets the next unused reply of its conversation and is reported as different. Parallel
calls may therefore come in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Literal

from msgspec import UNSET

from agentv.errors import StoreError
from agentv.extensions.agents.gateway.prompts import SHOWN, Placeholders, Prompt, prompt_of, shared
from agentv.extensions.agents.gateway.trial_texts import TrialTexts, reply_texts
from agentv.model.values.formatting import cut, plural
from agentv.model.values.message import portable
from agentv.model.values.response import Failure
from agentv.model.values.trace import ModelReply, ModelRequest
from agentv.ports import Call
from agentv.reports.text import listed
from agentv.store.cassettes.cassette import Cassette
from agentv.store.cassettes.recorded_trials import (
    ExchangeLine,
    RecordedTrial,
    ReplyLine,
    RequestLine,
    ShownMessage,
    TrialLine,
    recording_digest,
)

_NO_REPLY = ModelReply(0, "", complete=False)
_OVERLOADED = frozenset({408, 409, 425, 429})
SYSTEM_SHOWN = 300
"""Characters of a system prompt that a cassette shows."""


@dataclass(slots=True)
class _Exchange:
    prompt: Prompt
    reply: ModelReply = _NO_REPLY

    @property
    def failed(self) -> bool:
        """Whether the server could not answer, which says nothing about the model."""
        status = self.reply.status
        return status in _OVERLOADED or status >= 500 or not self.reply.complete


class _TrialTexts:
    """Base that replaces texts that are new in each trial, in prompts to compare and in recorded replies."""

    def __init__(self) -> None:
        self.set_placeholders({})

    def set_placeholders(self, texts: Mapping[str, str]) -> None:
        """Set the texts that are new in each trial: text → placeholder."""
        self._placeholders = Placeholders(texts)
        self._texts = TrialTexts(texts)


class TrialRecording(_TrialTexts):
    """The exchanges of a trial that is being recorded.

    Args:
        call: the first call of the trial.
        keep: called with the recording when the trial has ended, or None if its agent made no call.
    """

    replays: Literal[False] = False

    def __init__(self, call: Call, keep: Callable[[RecordedTrial | None], None]) -> None:
        self._call = call
        self._keep = keep
        self._exchanges: list[_Exchange] = []
        super().__init__()

    def begin(self, request: ModelRequest) -> Callable[[ModelReply], None]:
        """Record a request and return a function that records its reply."""
        exchange = _Exchange(prompt_of(request, self._placeholders))
        self._exchanges.append(exchange)
        return partial(setattr, exchange, "reply")

    def finish(self, *, complete: bool) -> None:
        """Keep the recording if the agent gave an answer (`complete`)."""
        if complete:
            self._keep(self._recording())

    def notes(self) -> tuple[str, ...]:
        """Return no notes, since there is nothing to compare with."""
        return ()

    def _recording(self) -> RecordedTrial | None:
        kept = []
        for number, one in enumerate(self._exchanges, 1):
            if one.failed and any(later.prompt == one.prompt for later in self._exchanges[number:]):
                continue  # keep only the last attempt of a request that failed and was retried
            kept.append(one)
        if not kept:
            return None
        call, request = self._call, self._call.request
        replies = [ReplyLine.of(self._texts.to_recorded(one.reply)) for one in kept]
        recording = recording_digest(call.key, replies)
        trial = TrialLine(
            key=call.key,
            case=request.case_id,
            target=call.target,
            variant=request.variant or UNSET,
            sample=request.sample if request.sample > 1 else UNSET,
            suite=request.suite.partition("\0")[0] or UNSET,
            workspace=request.workspace_key or UNSET,
            recording=recording,
            exchanges=len(kept),
            asked=[dict(one.as_json()) for one in portable(request.messages, request.root)],
        )
        lines = _lines([one.prompt for one in kept], replies, trial)
        return RecordedTrial(trial, tuple(lines))


def _lines(prompts: list[Prompt], replies: list[ReplyLine], trial: TrialLine) -> Iterator[ExchangeLine]:
    conversations: dict[tuple[str, ...], tuple[int, Prompt]] = {}
    for number, (prompt, reply) in enumerate(zip(prompts, replies, strict=True), 1):
        place = conversation_of(prompt)
        known = conversations.get(place)
        conversation = len(conversations) + 1 if known is None else known[0]
        after = 0 if known is None else shared(known[1].digests, prompt.digests)
        conversations[place] = (conversation, prompt)
        new = prompt.messages[after:]
        yield ExchangeLine(
            recording=trial.recording,
            exchange=number,
            case=trial.case,
            target=trial.target,
            request=RequestLine(conversation, *_head(prompt), prompt.parameters, after, [one.digest for one in new]),
            asked=[ShownMessage(one.role, cut(one.text, SHOWN)) for one in new if not (one.is_reply and after)],
            system=prompt.system_text[:SYSTEM_SHOWN] if known is None and prompt.system_text else UNSET,
            tools=list(prompt.tool_names) if known is None and prompt.tool_names else UNSET,
            reply=reply,
        )


def conversation_of(prompt: Prompt) -> tuple[str, ...]:
    """Return a key of a conversation within a trial: the agent's own, a sub-agent's, or a side call."""
    first = prompt.messages[0].digest if prompt.messages else ""
    return (*_head(prompt), first)


_BEFORE, _BEHIND = 20, 60
"""Characters that are quoted before and after the first difference of two texts."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A recorded exchange, with the digests of all messages in its request."""

    line: ExchangeLine
    digests: tuple[str, ...]

    @property
    def is_model_call(self) -> bool:
        """Whether a model answered it; listing models and counting tokens do not count."""
        asked = self.line.request
        return asked.method == "POST" and not asked.path.endswith(_COUNTS)

    def matches(self, prompt: Prompt) -> bool:
        """Whether a prompt equals the recorded one."""
        asked = self.line.request
        facts = (asked.method, asked.path, asked.model, asked.system, asked.tools, asked.parameters)
        return self.digests == prompt.digests and facts == (*_head(prompt), prompt.parameters)

    def similarity(self, prompt: Prompt) -> int:
        """Return how many facts about the start of a conversation agree with a prompt; `_IDENTICAL` if all do."""
        asked = self.line.request
        recorded = (asked.method, asked.path, asked.model, asked.system, asked.tools)
        same = [one == other for one, other in zip(recorded, _head(prompt), strict=True)]
        return sum(same) + (self.digests[:1] == prompt.digests[:1])


class TrialReplay(_TrialTexts):
    """The exchanges of a trial that is replayed: nothing is forwarded, delayed or charged, and no fault is injected.

    Args:
        file: name of the cassette.
        recording: the recorded trial.
        ended: called with this object when the agent has ended.

    Attributes:
        case: id of the trial's case.
        differing: number of requests that differ from the recorded ones.
    """

    replays: Literal[True] = True

    def __init__(self, file: str, recording: RecordedTrial, ended: Callable[[TrialReplay], None]) -> None:
        self.case = recording.trial.case
        self.differing = 0
        self._file = file
        self._recorded = list(_with_digests(recording.exchanges))
        self._ended = ended
        self._unused = list(self._recorded)
        self._conversations: dict[tuple[str, ...], tuple[int, Prompt]] = {}  # → recorded one, last prompt
        self._first = ""  # the first difference
        self._missing: Failure | None = None
        super().__init__()

    def recorded(self, request: ModelRequest) -> ModelReply | Failure:
        """Return the recorded reply to the next request, or a Failure."""
        prompt = prompt_of(request, self._placeholders)
        place = conversation_of(prompt)
        conversation, last = self._conversations.get(place) or (self._matching_conversation(prompt), None)
        found = self._next_exchange(conversation, prompt) if conversation is not None else None
        if conversation is None or found is None:
            what = f"the agent made a model call that is not recorded ({prompt.method} {prompt.path})"
            differing = f" after {self._first}" if self._first else ""
            made = len(self._recorded) - len(self._unused)
            count = f"{made} of {plural(len(self._recorded), 'recorded call')} made"
            failure = Failure("not-recorded", f"{self._file}: {what}{differing}; {count}. Record the trial again")
            self._missing = self._missing or failure
            return failure
        self._conversations[place] = (conversation, prompt)
        if found in self._unused:
            self._unused.remove(found)
            different = next(_differences(found.line, prompt, last), None)
            if different is not None:
                self.differing += 1
                self._first = self._first or f"call {found.line.exchange}: {different}"
        return self._texts.from_recorded(found.line.reply.reply())

    def finish(self, *, complete: bool) -> Failure | None:
        """Return a Failure if the recording lacks a reply, or if the agent used none of it."""
        del complete
        self._ended(self)
        calls = [one for one in self._recorded if one.is_model_call] or self._recorded
        if self._missing is None and all(one in self._unused for one in calls):
            number = plural(len(calls), "recorded model call")
            return Failure("not-replayed", f"the agent made none of the {number} of {self._file}")
        return self._missing

    def notes(self) -> tuple[str, ...]:
        """Return notes on how the requests differ from the recorded ones."""
        notes = []
        if self.differing:
            count = f"{self.differing} of {plural(len(self._recorded), 'recorded model call')}"
            what = f"replayed from {self._file} with different prompts: {count} differ"
            notes.append(f"{what}; first difference: {self._first}")
        if self._unused and self._conversations:
            count = f"{len(self._unused)} of {plural(len(self._recorded), 'recorded model call')}"
            verb = "was" if len(self._unused) == 1 else "were"
            notes.append(f"replayed from {self._file}: {count} {verb} not made")
        return tuple(notes)

    @property
    def drifted(self) -> bool:
        """Whether the agent's requests differ from the recorded ones."""
        return bool(self.differing or self._unused)

    def _matching_conversation(self, prompt: Prompt) -> int | None:
        """Return the recorded conversation for a new one: an identical one, else the most similar unused one."""
        followed = {conversation for conversation, _ in self._conversations.values()}
        firsts = {one.line.request.conversation: one for one in reversed(self._recorded)}
        left = {one.line.request.conversation for one in self._unused}
        asked = (prompt.method, prompt.path)
        open_ = [(place, one) for place, one in firsts.items() if place in left]
        of_path = [(place, one) for place, one in open_ if (one.line.request.method, one.line.request.path) == asked]
        if not of_path:
            return None
        scores = {place: one.similarity(prompt) for place, one in of_path}
        return max(scores, key=lambda at: (scores[at] == _IDENTICAL, at not in followed, scores[at], -at))

    def _next_exchange(self, conversation: int, prompt: Prompt) -> _Recorded | None:
        """Return the recorded exchange for a prompt, or None. One with an incomplete reply can be used again."""
        left = [one for one in self._unused if one.line.request.conversation == conversation]
        exact = next((one for one in left if one.matches(prompt)), None)
        if exact is not None or left:
            return exact or left[0]
        reusable = (one for one in self._recorded if one.line.reply.complete is False and one.matches(prompt))
        return next(reusable, None)


_COUNTS = ("/count_tokens", "/input_tokens", ":countTokens")
"""Suffixes of paths that count tokens."""

_IDENTICAL = 6
"""Similarity of identical conversations."""


def _with_digests(exchanges: tuple[ExchangeLine, ...]) -> Iterator[_Recorded]:
    """Yield the exchanges with the digests of all messages in their requests."""
    known: dict[int, tuple[str, ...]] = {}
    for line in exchanges:
        asked = line.request
        digests = (*known.get(asked.conversation, ())[: asked.after], *asked.messages)
        known[asked.conversation] = digests
        yield _Recorded(line, digests)


def _head(prompt: Prompt) -> tuple[str, str, str, str, str]:
    return (prompt.method, prompt.path, prompt.model, prompt.system, prompt.tools)


def _differences(line: ExchangeLine, prompt: Prompt, last: Prompt | None) -> Iterator[str]:
    """Yield how a prompt differs from the recorded one. Facts of the whole conversation are compared only once."""
    asked = line.request
    if last is None:
        if asked.model != prompt.model:
            yield f"model '{prompt.model}' instead of '{asked.model}'"
        if asked.system != prompt.system:
            yield f"the system prompt{_excerpt(line.system or '', prompt.system_text[:SYSTEM_SHOWN])}"
        if asked.tools != prompt.tools:
            earlier = line.tools or []
            added = [f"+{name}" for name in prompt.tool_names if name not in earlier]
            removed = [f"-{name}" for name in earlier if name not in prompt.tool_names]
            yield "the tools" + (f" ({', '.join((*added, *removed))})" if added or removed else "")
    if asked.parameters != prompt.parameters:
        yield "the parameters of the request"
    after = 0 if last is None else shared(last.digests, prompt.digests)
    if (asked.after, asked.messages) == (after, list(prompt.digests[after:])):
        return
    new = [one for one in prompt.messages[after:] if not (one.is_reply and after)]
    for recorded, now in zip(line.asked, new, strict=False):
        if recorded.text != cut(now.text, SHOWN):
            yield f"the message of role '{now.role}'{_excerpt(recorded.text, cut(now.text, SHOWN))}"
            return
    if len(line.asked) == len(new):
        yield "the messages"
    else:
        yield f"{plural(len(new), 'new message')} instead of {len(line.asked)}"


def _excerpt(recorded: str, now: str) -> str:
    """Return quotes of both texts around their first difference, or "" if they are equal."""
    at = shared(recorded, now)
    if at == len(recorded) == len(now):
        return ""
    return f" says {_quoted(now, at)} instead of {_quoted(recorded, at)}"


def _quoted(text: str, at: int) -> str:
    start = max(0, at - _BEFORE)
    piece = text[start : at + _BEHIND]
    shown = " ".join(piece.split())
    return f"'{'…' if start else ''}{shown}{'…' if at + _BEHIND < len(text) else ''}'"


TrialExchanges = TrialRecording | TrialReplay


class CassetteExchanges:
    """The model calls of a run's agents. Implements `ModelExchanges`.

    Args:
        cassette: the cassette to record to and replay from.
        records: whether to record trials that the cassette lacks; otherwise they are errors.
        adds: whether to write each recorded trial at once, so that a run that is killed loses none.
    """

    def __init__(self, cassette: Cassette, *, records: bool, adds: bool) -> None:
        self._cassette = cassette
        self._records = records
        self._adds = adds
        self._replayed = 0
        self._drifted: list[str] = []
        self._unrecorded: list[str] = []

    def open(self, call: Call) -> TrialExchanges | Failure:
        """Return the replay of a recorded trial or a new recording, or a Failure if neither is possible."""
        found = self._cassette.recorded_trial(call)
        if isinstance(found, RecordedTrial):
            return TrialReplay(self._cassette.path.name, found, self._ended)
        if not self._records:
            return found
        return TrialRecording(call, partial(self._keep, call))

    def notes(self) -> Iterator[str]:
        """Yield notes for people about the agents of the run."""
        name = self._cassette.path.name
        if self._replayed:
            yield f"{plural(self._replayed, 'agent trial')} replayed from {name}: real agents, recorded replies"
        if self._drifted:
            count = f"{len(self._drifted)} of {plural(self._replayed, 'replayed trial')}"
            which = f"({listed(sorted(set(self._drifted)))})"
            yield f"in {count}, the agent's prompts differ from the recorded ones {which}: record again to be sure"
        if self._unrecorded:
            cases = listed(sorted(set(self._unrecorded)))
            yield f"not recorded, because the agent made no model call through the gateway: {cases}"

    def _keep(self, call: Call, recorded: RecordedTrial | None) -> None:
        if recorded is None:
            self._unrecorded.append(call.request.case_id)
            return
        texts = (text for exchange in recorded.exchanges for text in reply_texts(exchange.reply.reply().body))
        if self._cassette.keep_trial(recorded, texts) and self._adds:
            with suppress(StoreError):  # the run adds it again at its end and reports the error
                self._cassette.add()

    def _ended(self, replay: TrialReplay) -> None:
        self._replayed += 1
        if replay.drifted:
            self._drifted.append(replay.case)
