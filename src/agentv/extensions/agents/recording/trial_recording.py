"""Recording of one trial: the exchanges of its agent with its model, kept as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msgspec import UNSET

from agentv.extensions.agents.recording.prompts import Placeholders, Prompt, prompt_of, shared, shortened
from agentv.extensions.agents.recording.trial_texts import TrialTexts
from agentv.model.values.message import portable
from agentv.model.values.response import Failure
from agentv.model.values.trace import ModelReply, ModelRequest
from agentv.ports import Call
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
        """True if the server could not answer, which says nothing about the model."""
        status = self.reply.status
        return status in _OVERLOADED or status >= 500 or not self.reply.complete


class TrialRecording:
    """The exchanges of a trial that is being recorded. A `TrialExchanges`.

    Args:
        call: the first call of the trial.
        keep: gets the recording once the trial has ended.
    """

    replays = False

    def __init__(self, call: Call, keep: Callable[[RecordedTrial | None], None]) -> None:
        self._call = call
        self._keep = keep
        self._exchanges: list[_Exchange] = []
        self._placeholders = Placeholders()
        self._texts = TrialTexts()

    def set_placeholders(self, texts: Mapping[str, str]) -> None:
        """Name the texts that are new for each trial."""
        self._placeholders = Placeholders(texts)
        self._texts = TrialTexts(texts)

    def recorded(self, request: ModelRequest) -> Failure:
        """Nothing: the request is forwarded."""
        return Failure("not-recorded", f"{request.method} {request.path} is being recorded")

    def begin(self, request: ModelRequest) -> int:
        """The number of a request that is forwarded."""
        self._exchanges.append(_Exchange(prompt_of(request, self._placeholders)))
        return len(self._exchanges)

    def keep(self, number: int, reply: ModelReply) -> None:
        """Record the reply to a request."""
        self._exchanges[number - 1].reply = reply

    def finish(self, *, complete: bool) -> None:
        """Keep the trial, if its agent gave an answer and called its model."""
        if complete:
            self._keep(self._recording())

    def notes(self) -> tuple[str, ...]:
        """Nothing: what is recorded differs from nothing."""
        return ()

    def _recording(self) -> RecordedTrial | None:
        kept = [one for number, one in enumerate(self._exchanges) if not self._is_overcome(number)]
        if not kept:
            return None
        call, request = self._call, self._call.request
        replies = [ReplyLine.of(self._texts.kept(one.reply)) for one in kept]
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

    def _is_overcome(self, number: int) -> bool:
        """Whether an exchange failed, and the agent asked the same again: only the last try is kept."""
        one = self._exchanges[number]
        return one.failed and any(later.prompt == one.prompt for later in self._exchanges[number + 1 :])


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
            request=RequestLine(
                conversation,
                prompt.method,
                prompt.path,
                prompt.model,
                prompt.system,
                prompt.tools,
                prompt.parameters,
                after,
                [message.digest for message in new],
            ),
            asked=[ShownMessage(one.role, shortened(one.text)) for one in new if not (one.is_reply and after)],
            system=prompt.system_text[:SYSTEM_SHOWN] if known is None and prompt.system_text else UNSET,
            tools=list(prompt.tool_names) if known is None and prompt.tool_names else UNSET,
            reply=reply,
        )


def conversation_of(prompt: Prompt) -> tuple[str, ...]:
    """A key of a conversation within a trial: the agent's own, one of a sub-agent, or a side call."""
    first = prompt.messages[0].digest if prompt.messages else ""
    return (prompt.method, prompt.path, prompt.model, prompt.system, prompt.tools, first)
