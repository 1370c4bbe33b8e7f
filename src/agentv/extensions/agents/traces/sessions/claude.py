"""Sessions of Claude Code: `~/.claude/projects/PROJECT/SESSION.jsonl`, and `SESSION/subagents/` for sub-agents.

Earlier versions wrote the records of sub-agents to the file of the session, marked `isSidechain`.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from agentv.extensions.agents.traces.sessions.recorder import SessionFile, SessionRecorder, blocks_of
from agentv.extensions.agents.traces.values import arguments_of, as_json, items, mapping, number, string, text_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.values import JsonObject
from agentv.targets.anthropic.messages import usage_of

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_INJECTED = ("[Request interrupted by user", "<local-command-", "<command-name>", "<task-notification>", "Caveat: ")
_DENIED = (
    "The user doesn't want to proceed with this tool use",
    "Claude requested permissions to",
    "Permission to use",
    "This command requires approval",
)


def read_claude(session: SessionFile) -> Trace | Failure:
    """Return the trace of a session, or a Failure if the file is not a session."""
    recorder = SessionRecorder("claude")
    reader = _ClaudeReader(recorder)
    for row in recorder.records(session.data):
        reader.add(row)
    metas = {PurePosixPath(name).name: data for name, data in session.others.items()}
    for name, data in session.others.items():
        if name.endswith(".jsonl"):
            about = metas.get(PurePosixPath(name).stem + ".meta.json", b"").decode(errors="replace")
            reader.add_subagent(PurePosixPath(name).stem, data, mapping(as_json(about)))
    return recorder.trace(session.data)


class _ClaudeReader:
    """Reads the records of a session in order."""

    def __init__(self, recorder: SessionRecorder) -> None:
        self._recorder = recorder
        self._seen: set[str] = set()
        self._calls_by_prompt: dict[str, list[str]] = {}
        self._calls_by_agent: dict[str, str] = {}
        self._parents: dict[str, str | None] = {}

    def add(self, row: JsonObject, subagent: str | None = None) -> None:
        """Add a record; `subagent` is the id of the call that ran the sub-agent which wrote it."""
        identity = string(row.get("uuid"))
        if identity and identity in self._seen:
            return
        self._seen.add(identity)
        about = self._recorder.about
        about["session"] = about["session"] or string(row.get("sessionId"))
        about["version"] = string(row.get("version")) or about["version"]
        about["project"] = about["project"] or string(row.get("cwd"))
        if row.get("type") == "cost-state" and subagent is None:
            self._recorder.cost_usd = number(row.get("totalCostUSD"))
        if row.get("type") not in ("user", "assistant") or row.get("isMeta") is True:
            return
        self._recorder.set_time(row.get("timestamp"))
        self._recorder.parent = subagent or self._sidechain(row, identity)
        if row.get("type") == "assistant":
            self._answer(row, mapping(row.get("message")))
        elif row.get("isCompactSummary") is not True:
            self._user_message(row, mapping(row.get("message")))

    def add_subagent(self, stem: str, data: bytes, about: JsonObject) -> None:
        """Add the records of a sub-agent's file."""
        rows = list(self._recorder.records(data))
        first = next((row for row in rows if row.get("type") == "user"), {})
        agent = string(first.get("agentId")) or stem.removeprefix("agent-")
        call = string(about.get("toolUseId")) or self._calls_by_agent.get(agent) or self._call_for(first)
        if not call or not self._recorder.knows(call):
            self._recorder.problems.note(f"the file of the sub-agent '{agent[:40]}' belongs to no call")
            return
        for row in rows:
            self.add(row, call)

    def _sidechain(self, row: JsonObject, identity: str) -> str | None:
        """The call that ran a record's sub-agent, by the preceding record or the prompt; None for other records."""
        if row.get("isSidechain") is not True:
            return None
        before = string(row.get("parentUuid"))
        call = self._parents[before] if before in self._parents else self._call_for(row)
        self._parents[identity] = call
        return call

    def _call_for(self, row: JsonObject) -> str | None:
        waiting = self._calls_by_prompt.get(text_of(mapping(row.get("message")).get("content")), [])
        return waiting.pop(0) if waiting else None

    def _answer(self, row: JsonObject, message: JsonObject) -> None:
        key = string(message.get("id"))
        model = string(message.get("model"))
        for block in items(message.get("content")):
            self._block(mapping(block), key)
        if isinstance(message.get("content"), str):
            self._recorder.message("assistant", string(message.get("content")), key=key)
        if row.get("isApiErrorMessage") is True:
            self._recorder.ended_in_error(text_of(message.get("content")))
        elif model != "<synthetic>":
            tokens, _ = usage_of(message.get("usage"))  # a message's last record has its totals
            self._recorder.usage(model, tokens, cost=number(row.get("costUSD")), key=key)
            self._recorder.stop_reason = string(message.get("stop_reason")) or self._recorder.stop_reason

    def _block(self, block: JsonObject, key: str) -> None:
        kind = block.get("type")
        if kind == "text":
            self._recorder.message("assistant", string(block.get("text")), key=key)
        elif kind == "thinking":
            self._recorder.message("assistant", "", reasoning=string(block.get("thinking")), key=key)
        elif kind in ("tool_use", "server_tool_use"):
            identity, arguments = string(block.get("id")), arguments_of(block.get("input"))
            self._recorder.call(identity, string(block.get("name")), arguments)
            prompt = arguments.get("prompt")
            if isinstance(prompt, str):
                self._calls_by_prompt.setdefault(prompt, []).append(identity)

    def _user_message(self, row: JsonObject, message: JsonObject) -> None:
        blocks = blocks_of(message.get("content"))
        for block in blocks:
            if block.get("type") == "tool_result":
                self._result(row, block)
        raw = (string(block.get("text")) for block in blocks if block.get("type") == "text")
        texts = [_REMINDER.sub("", one).strip() for one in raw]
        if any(text.startswith("[Request interrupted by user") for text in texts):
            self._recorder.stop_reason = "aborted"
        self._recorder.message("user", "\n\n".join(one for one in texts if one and not one.startswith(_INJECTED)))

    def _result(self, row: JsonObject, block: JsonObject) -> None:
        identity = string(block.get("tool_use_id"))
        text = _REMINDER.sub("", text_of(block.get("content"))).rstrip()
        result = mapping(row.get("toolUseResult"))
        if agent := string(result.get("agentId")):
            self._calls_by_agent[agent] = identity
        if block.get("is_error") is not True:
            self._recorder.result(identity, text)
            return
        decision = string(mapping(row.get("permissionDecision")).get("decision"))
        denied = bool(row.get("toolDenialKind")) or decision in ("reject", "deny") or text.startswith(_DENIED)
        self._recorder.result(identity, None, error=text, status="denied" if denied else "failed")
