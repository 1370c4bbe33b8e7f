"""Model calls of agents in a cassette: each trial of a run is replayed from it, or recorded to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from agentv.errors import StoreError
from agentv.extensions.agents.recording.trial_recording import TrialRecording
from agentv.extensions.agents.recording.trial_replay import TrialReplay
from agentv.extensions.agents.recording.trial_texts import reply_texts
from agentv.model.values.formatting import plural
from agentv.model.values.response import Failure
from agentv.ports import Call
from agentv.store.cassettes.cassette import Cassette
from agentv.store.cassettes.recorded_trials import RecordedTrial

_SHOWN = 10
"""Cases that a note names."""


class CassetteExchanges:
    """The model calls of the agents of a run. A `ModelExchanges`.

    Args:
        cassette: that is recorded or replayed.
        records: trials that the cassette lacks are recorded; else they are errors.
        adds: a recorded trial is written at once, so that a run that is killed loses none.
    """

    def __init__(self, cassette: Cassette, *, records: bool, adds: bool) -> None:
        self._cassette = cassette
        self._records = records
        self._adds = adds
        self._replayed = 0
        self._drifted: list[str] = []
        self._silent: list[str] = []

    def open(self, call: Call) -> TrialRecording | TrialReplay | Failure:
        """The recording of a trial, to be replayed or made; why it cannot be replayed."""
        found = self._cassette.recorded_trial(call)
        if isinstance(found, RecordedTrial):
            return TrialReplay(self._cassette.path.name, found, self._ended)
        if not self._records:
            return found

        def keep(recorded: RecordedTrial | None) -> None:
            self._keep(call, recorded)

        return TrialRecording(call, keep)

    def notes(self) -> Iterator[str]:
        """Notes for people about the agents of the run."""
        name = self._cassette.path.name
        if self._replayed:
            yield f"{plural(self._replayed, 'agent trial')} replayed from {name}: real agents, recorded replies"
        if self._drifted:
            count = f"{len(self._drifted)} of {plural(self._replayed, 'replayed trial')}"
            which = f"({_listed(self._drifted)})"
            yield f"in {count}, the agent's prompts differ from the recorded ones {which}: record again to be sure"
        if self._silent:
            yield f"not recorded, because the agent made no model call through the gateway: {_listed(self._silent)}"

    def _keep(self, call: Call, recorded: RecordedTrial | None) -> None:
        if recorded is None:
            self._silent.append(call.request.case_id)
            return
        texts = (text for exchange in recorded.exchanges for text in reply_texts(exchange.reply.reply().body))
        if self._cassette.keep_trial(recorded, texts) and self._adds:
            with suppress(StoreError):  # it is added at the end of the run too, which says what is wrong
                self._cassette.add()

    def _ended(self, replay: TrialReplay) -> None:
        self._replayed += 1
        if replay.drifted:
            self._drifted.append(replay.case)


def _listed(cases: list[str]) -> str:
    names = sorted(set(cases))
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
