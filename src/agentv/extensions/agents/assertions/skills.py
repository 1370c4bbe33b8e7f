"""Evidence that an agent used a skill: which calls of which tools show it, for all agents in one table.

Only a call that gave the agent the skill's text counts: its tool for skills, or a file of the skill that it read, with
its tool for reading or with a command. Listing and searching directories, editing a skill and copying it are no use of
it, nor is a call that failed, was denied or has no result.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from msgspec.structs import replace

from agentv.assertions.evidence import excerpt, quoted
from agentv.model.run.context import AssertionContext
from agentv.model.run.grade import Grade
from agentv.model.values.message import ToolCall
from agentv.model.values.trace import ToolCallStep
from agentv.model.values.values import JsonObject, lazy_pattern
from agentv.registry.fields import Between, DeclaredAssertion, Doc, Issue, Nonempty, Text, Texts

SKILL_FILE = "SKILL.md"

_SKILLS = "skills"
_NAMED_BY = ("skill", "name", "skill_name", "command")
_PATHS = ("file_path", "path", "filePath", "filename", "absolute_path", "target_file", "paths", "files")
_COMMANDS = ("command", "cmd", "script", "input", "action")
_PATTERN = frozenset("*?[")
_UNKNOWN = frozenset("{$`")
"""Characters of names that a shell puts others in the place of."""
_UNSUCCESSFUL = frozenset({"failed", "denied", "cancelled"})

_UNNAMED = frozenset({"other", "think", "tool"})
"""Names of calls that an agent gave neither a title nor a name."""

_LISTS = frozenset({"transcript", "row"})
"""Sources of traces that may list calls without their results."""

_LONGEST_COMMAND = 20_000
"""Characters of a command that are looked at."""

_DEEPEST = 3
"""How often a command may hand a command to a shell."""

_READERS = frozenset(
    {"cat", "bat", "batcat", "head", "tail", "less", "more", "nl", "tac", "sed", "awk", "gc", "get-content", "type"}
)
"""Programs that print a file."""

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "pwsh", "powershell"})
_PREFIXES = frozenset({"sudo", "env", "command", "time", "nice", "exec"})
"""Words before the program of a command."""

_PUNCTUATION = "();<>|&\n"

_HANDED_OVER = lazy_pattern(r"<<-?\s*(['\"]?)(\w+)\1.*?^\s*\2$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Activation(DeclaredAssertion):
    """The agent loaded this skill and no other of the listed ones; without `value`, none of them."""

    skills: Annotated[Texts, Doc("names of the skills that the agent could load")]
    value: Annotated[Text | None, Nonempty(), Doc("the skill that it should load")] = None
    max_turns: Annotated[
        Annotated[int, Between(1)] | None,
        Doc("the limit of its model calls: a trace that ends there shows all that it loaded"),
    ] = None

    def label(self) -> str:
        """The skill."""
        return "no skill" if self.value is None else quoted(self.value)

    def validate(self) -> Iterable[Issue]:
        """Reports a skill that is not among those that could be loaded."""
        if self.value is not None and self.value not in self.skills:
            yield Issue(("value",), f"'skills' does not list '{self.value}'")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the skills that the agent loaded. A trace that cannot show them is an error, never "none"."""
        calls, turns = context.tool_calls, context.trace_summary.llm_call_count
        if context.partial and self.max_turns is not None and turns > self.max_turns:
            calls = tuple(call for message in context.messages for call in message.tool_calls)
        used = used_skills(context, calls, self.skills)
        if used is None:
            why = context.partial or "the target reports neither skills nor a transcript"
            return Grade.errored("no-data", f"the skills that the agent loaded are unknown: {why}")
        loaded = [name for name in dict.fromkeys(used) if name in self.skills]
        unnamed = () if loaded else _unnamed(context)
        if unnamed:
            message = f"calls without the name of their tool ({', '.join(unnamed)}) may have loaded a skill"
            return Grade.errored("no-data", f"the skills that the agent loaded are unknown: {message}")
        right = loaded == [self.value] if self.value is not None else not loaded
        evidence = excerpt(f"loaded: {', '.join(used)}" if used else "no skill was loaded")
        grade = Grade.of(right, f"loads {self.label()}", evidence)
        return replace(grade, details={"skill": self.value, "loaded": loaded, "skills": list(self.skills)})


def _unnamed(context: AssertionContext) -> tuple[str, ...]:
    """Titles of calls that an agent reported over ACP without the name of their tool, which a kind does not say."""
    trace = context.agent_trace
    if trace is None or trace.source != "acp":
        return ()
    return tuple(dict.fromkeys(one.name for one in trace.tool_calls if " " in one.name or one.name in _UNNAMED))


def used_skills(
    context: AssertionContext, calls: Sequence[ToolCall] | None, known: Sequence[str] = ()
) -> list[str] | None:
    """The used skills in order; None if they are unknown.

    Args:
        context: of the trial.
        calls: the tool calls that show it; None: they are not all known.
        known: the skills that there are, of which `cat skills/*/SKILL.md` printed those that match.
    """
    reported = context.response_metadata.get("skill_calls", context.response_metadata.get("skillCalls"))
    listed = reported if isinstance(reported, Sequence) and not isinstance(reported, str) else None
    if listed is None and calls is None:
        return None
    # what promptfoo calls `skillCalls`, without uses that ended with an error
    rows = [row for row in listed or () if isinstance(row, Mapping) and row.get("is_error") is not True]
    used = [str(row["name"]) for row in rows if isinstance(row.get("name"), str)]
    failed = _failed_calls(context)
    if used:
        return used
    for call in calls or ():
        for name in skills_of(call) if _key(call) not in failed else ():
            used += [name] if _PATTERN.isdisjoint(name) else fnmatch.filter(known, name)
    return used


def skills_of(call: ToolCall) -> Iterable[str]:
    """The skills that a call gave the agent, each once."""
    known = call.names if call.native_name is not None else ()  # else it may be a tool of the user's own
    also = {name.casefold() for name in call.names}
    for tool, (others, given) in EVIDENCE.items():
        if tool in known or not others.isdisjoint(also):
            return dict.fromkeys(given(call.arguments))
    return ()


def _failed_calls(context: AssertionContext) -> frozenset[str]:
    """The calls that gave the agent nothing. One without a result is such a call where results are reported."""
    trace = context.agent_trace
    if trace is None:
        return frozenset()
    calls = trace.tool_calls
    are_reported = trace.source not in _LISTS or any(call.status != "unknown" for call in calls)
    useless, useful = set[str](), set[str]()
    for call in calls:
        has_no_result = are_reported and call.status == "unknown" and call.result is None
        gave_nothing = call.failed or call.status in _UNSUCCESSFUL or has_no_result
        (useless if gave_nothing else useful).add(_key(call))
    return frozenset(useless - useful)


def _key(call: ToolCall | ToolCallStep) -> str:
    """What tells a call apart; without an id, two with the same arguments are one."""
    return call.id or json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str)


def _loaded(arguments: JsonObject) -> Iterator[str]:
    """By a tool for skills: `{"skill": "docs:pdf"}`, where a plugin's name stands before a colon."""
    named = next((one for key in _NAMED_BY if isinstance(one := arguments.get(key), str)), "")
    if named:
        yield named.removeprefix("/").rpartition(":")[2]


def _read(arguments: JsonObject) -> Iterator[str]:
    """By a tool that reads files: the paths among its arguments."""
    for key in _PATHS:
        value = arguments.get(key)
        for one in value if isinstance(value, list | tuple) else (value,):
            path = one.get("path") if isinstance(one, Mapping) else one
            name = skill_at(path) if isinstance(path, str) else None
            if name is not None:
                yield name


def skill_at(path: str) -> str | None:
    """The skill that a file belongs to: `SKILL.md` to its directory, any other file to the one below `skills/`.

    In the path of a shell, the name may be a pattern.
    """
    parts = path.replace("\\", "/").split("/")
    name = None
    if parts[-1] == SKILL_FILE and len(parts) > 1:
        name = parts[-2]
    elif _SKILLS in parts[:-2]:
        name = parts[len(parts) - 1 - parts[::-1].index(_SKILLS, 2) + 1]
    return name if name and name not in {".", ".."} and _UNKNOWN.isdisjoint(name) else None


def _printed(arguments: JsonObject) -> Iterator[str]:
    """By a command that prints a `SKILL.md`."""
    for key in _COMMANDS:
        value = arguments.get(key)
        if isinstance(value, Mapping):
            yield from _printed(value)
        elif isinstance(value, str):
            yield from _in_line(value, _DEEPEST)
        elif isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
            yield from _in_words([str(word) for word in value], "", _DEEPEST)


def _in_line(line: str, depth: int) -> Iterator[str]:
    """The skills that a line of a shell prints."""
    if SKILL_FILE not in line or depth < 1:
        return
    directory = ""
    for words in _commands_of(line[:_LONGEST_COMMAND]):
        if words[0] == "cd" and len(words) > 1:
            directory = str(PurePosixPath(directory, words[1]))
        else:
            yield from _in_words(words, directory, depth)


def _commands_of(line: str) -> Iterator[list[str]]:
    """The words of each command of a line whose output is seen; none where a quote does not end."""
    import shlex  # few calls name a skill

    lexer = shlex.shlex(_HANDED_OVER.sub("", line), posix=True, punctuation_chars=_PUNCTUATION)
    lexer.whitespace_split, lexer.whitespace, lexer.commenters = True, " \t\r", ""
    words: list[str] = []
    is_seen, is_target = True, False
    try:
        parts = [*lexer, "\n"]
    except ValueError:
        return
    for part in parts:
        if not part or part.strip(_PUNCTUATION):
            words += [] if is_target else [part]
            is_target = False
        elif ">" in part:
            is_error = words[-1:] == ["2"]
            words = words[:-1] if is_error else words
            is_seen, is_target = is_seen and (is_error or part == ">&"), True
        elif "<" not in part:  # what is read from a file stands next, as an argument would
            if words and is_seen:
                yield words
            words, is_seen, is_target = [], True, False


def _in_words(words: Sequence[str], directory: str, depth: int) -> Iterator[str]:
    """The skills that one command prints in a directory."""
    start = next((at for at, one in enumerate(words) if one not in _PREFIXES and "=" not in one), len(words))
    program, *arguments = [*words[start:], ""]
    program, arguments = program.rpartition("/")[2].casefold(), [one for one in arguments if one]
    if program in _SHELLS and arguments:
        yield from _in_line(arguments[-1], depth - 1)
    edits = program == "sed" and any(one.startswith(("-i", "--in-place")) for one in arguments)
    if program in _READERS and not edits:
        for one in arguments:
            path = str(PurePosixPath(directory, one)) if directory else one
            name = skill_at(path) if path.endswith(SKILL_FILE) else None
            if name is not None:
                yield name


EVIDENCE: Mapping[str, tuple[frozenset[str], Callable[[JsonObject], Iterable[str]]]] = {
    "skill": (frozenset({"skill"}), _loaded),
    "read": (frozenset({"read", "read_file", "readfile", "view"}), _read),
    "shell": (frozenset(), _printed),
}
"""Canonical name of a tool → other names of it in transcripts that are not of a known agent, in small letters; and the
skills that a call with some arguments gave the agent. Calls of all other tools show nothing."""
