"""Sessions of pi: `~/.pi/agent/sessions/PROJECT/TIME_ID.jsonl`, a tree of entries; the first version was a list."""

from __future__ import annotations

from agentv.extensions.agents.traces.sessions.recorder import SessionFile, SessionRecorder, blocks_of
from agentv.extensions.agents.traces.values import arguments_of, count, mapping, number, string, text_of, tokens_of
from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.values import JsonObject

_ENDS = frozenset({"error", "aborted"})


def read_pi(session: SessionFile) -> Trace | Failure:
    """Return the trace of a session, or a Failure if the file is not a session."""
    recorder = SessionRecorder("pi")
    rows = list(recorder.records(session.data))
    about = next((row for row in rows if row.get("type") == "session"), {})
    recorder.about["session"] = string(about.get("id"))
    recorder.about["project"] = string(about.get("cwd"))
    for row in _branch(rows):
        recorder.set_time(row.get("timestamp"))
        message = mapping(row.get("message"))
        role = message.get("role")
        if role == "user":
            recorder.message("user", text_of(message.get("content")))
        elif role == "assistant":
            _answer(recorder, message)
        elif role == "toolResult":
            text = text_of(message.get("content"))
            failed = message.get("isError") is True
            recorder.result(string(message.get("toolCallId")), text, error=text if failed else None)
    return recorder.trace(session.data)


def _branch(rows: list[JsonObject]) -> list[JsonObject]:
    """The messages from the root to the last entry, without branches that the user abandoned."""
    entries = {string(row.get("id")): row for row in rows if row.get("type") != "session" and row.get("id")}
    messages = [row for row in rows if row.get("type") == "message"]
    if not entries or "parentId" not in next(reversed(entries.values())):
        return messages
    branch: set[str] = set()
    at = next(reversed(entries))
    while at in entries and at not in branch:
        branch.add(at)
        at = string(entries[at].get("parentId"))
    return [row for row in messages if string(row.get("id")) in branch]


def _answer(recorder: SessionRecorder, message: JsonObject) -> None:
    blocks = blocks_of(message.get("content"))
    text = "\n\n".join(string(block.get("text")) for block in blocks if block.get("type") == "text")
    thought = "\n\n".join(string(block.get("thinking")) for block in blocks if block.get("type") == "thinking")
    recorder.message("assistant", text, reasoning=thought)
    for block in blocks:
        if block.get("type") == "toolCall":
            recorder.call(string(block.get("id")), string(block.get("name")), arguments_of(block.get("arguments")))
    ended = string(message.get("stopReason"))
    recorder.stop_reason = ended
    usage = mapping(message.get("usage"))
    error = (string(message.get("errorMessage")) or ended) if ended in _ENDS else None
    recorder.error = error if ended == "error" and error else ""
    cost = number(mapping(usage.get("cost")).get("total"))
    taken = sum(count(usage.get(key)) or 0 for key in ("input", "cacheRead", "cacheWrite"))  # counted separately
    tokens = tokens_of({"input": taken, "output": usage.get("output"), "cached": usage.get("cacheRead")})
    recorder.usage(string(message.get("model")), tokens if usage else None, cost=cost, error=error)
