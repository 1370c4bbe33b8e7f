"""Recorded trials: those whose agent runs, while a cassette keeps or gives its model's side."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec

from agentv.engine.calls.recorded_call import call_key
from agentv.engine.conversation import first_request, turns_of
from agentv.extensions.agents.trial.work_context import WorkContext
from agentv.model.run.trial import Trial
from agentv.model.values.message import portable
from agentv.model.values.response import Failure
from agentv.ports import Call, Workspace
from agentv.work_ports import TrialExchanges

_encode = msgspec.json.Encoder(order="deterministic", enc_hook=str).encode


def exchanges_of(trial: Trial, run_context: WorkContext) -> TrialExchanges | Failure | None:
    """The recording of a trial's model calls, to write or to replay, or why it cannot be replayed, or None."""
    if trial.target.upstream is None or run_context.exchanges is None:
        return None
    return run_context.exchanges.open(recorded_call(trial))


def recorded_call(trial: Trial) -> Call:
    """The first call of a trial; its key covers all turns, since one agent's session answers them all."""
    request = first_request(trial)
    key = call_key(trial.target, request)
    if trial.case.turns:
        inputs = [portable(turn.input, request.root) for turn in turns_of(trial)]
        key = sha256(f"{key}\0".encode() + _encode(inputs)).hexdigest()
    return Call(key, trial.target.name, request)


def placeholders_of(trial: Trial, workspace: Workspace | None, token: str) -> dict[str, str]:
    """What is new for each trial → what stands for it in prompts that are compared, and in replies that are kept."""
    texts = {token: "[token]", trial.suite.root: "[repository]"}
    if workspace is not None:
        path, home = workspace.path, workspace.sandbox.home
        texts |= {path: "[workspace]", home: "[home]"}
        if home and Path(home).parent == Path(path).parent:  # a directory of this trial alone
            texts[str(Path(path).parent)] = "[trial]"
    return {text: name for text, name in texts.items() if text}
