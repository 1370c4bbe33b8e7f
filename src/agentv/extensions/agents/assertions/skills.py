"""Find the skills that an agent used by its tool calls, with one table of tools for all agents.

Only a call that gave the agent the skill's text counts: a call of a skill tool, or one that reads a file of the skill
with a read tool or a command. Listing and searching directories, and editing and copying a skill, do not count, nor
does a call that failed, was denied or has no result.
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
"""Characters that a shell expands in names."""
_UNSUCCESSFUL = frozenset({"failed", "denied", "cancelled"})

_UNNAMED = frozenset({"other", "think", "tool"})
"""Names of calls that an agent gave neither a title nor a name."""

_LISTS = frozenset({"transcript", "row"})
"""Sources of traces that may list calls without their results."""

_LONGEST_COMMAND = 20_000
"""Maximum number of characters of a command that are parsed."""

_DEEPEST = 3
"""Maximum nesting of commands that are passed to a shell."""

_READERS = frozenset(
    {"cat", "bat", "batcat", "head", "tail", "less", "more", "nl", "tac", "sed", "awk", "gc", "get-content", "type"}
)
"""Programs that print a file."""

_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "pwsh", "powershell"})
_PREFIXES = frozenset({"sudo", "env", "command", "time", "nice", "exec"})
"""Words that may precede the program of a command."""

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
        """Report a skill that `skills` does not list."""
        if self.value is not None and self.value not in self.skills:
            yield Issue(("value",), f"'skills' does not list '{self.value}'")

    def grade(self, context: AssertionContext) -> Grade:
        """Compare the loaded skills. If the trace cannot show them, the grade is an error, never "none"."""
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
    """Titles of ACP calls that the agent reported without a tool name, and whose kind does not imply one."""
    trace = context.agent_trace
    if trace is None or trace.source != "acp":
        return ()
    return tuple(dict.fromkeys(one.name for one in trace.tool_calls if " " in one.name or one.name in _UNNAMED))


def used_skills(
    context: AssertionContext, calls: Sequence[ToolCall] | None, known: Sequence[str] = ()
) -> list[str] | None:
    """Return the skills that the agent used, in order, or None if they are unknown.

    Args:
        context: context of the trial.
        calls: the tool calls; None if they are not all known.
        known: all skills; a pattern in `cat skills/*/SKILL.md` stands for those that match.
    """
    reported = context.response_metadata.get("skill_calls", context.response_metadata.get("skillCalls"))
    listed = reported if isinstance(reported, Sequence) and not isinstance(reported, str) else None
    if listed is None and calls is None:
        return None
    # promptfoo's `skillCalls`, without failed uses
    rows = [row for row in listed or () if isinstance(row, Mapping) and row.get("is_error") is not True]
    used = [str(row["name"]) for row in rows if isinstance(row.get("name"), str)]
    failed = _failed_calls(context)
    if used:
        return used
    for call in calls or ():
        for name in skills_of(call) if _call_key(call) not in failed else ():
            used += [name] if _PATTERN.isdisjoint(name) else fnmatch.filter(known, name)
    return used


def skills_of(call: ToolCall) -> Iterable[str]:
    """The skills whose text a call gave the agent, each once."""
    known = call.names if call.native_name is not None else ()  # else it may be a tool of the user's own
    lower_names = {name.casefold() for name in call.names}
    for tool, (others, given) in EVIDENCE.items():
        if tool in known or not others.isdisjoint(lower_names):
            return dict.fromkeys(given(call.arguments))
    return ()


def _failed_calls(context: AssertionContext) -> frozenset[str]:
    """Keys of the calls that gave the agent nothing, including those without a result if results are reported."""
    trace = context.agent_trace
    if trace is None:
        return frozenset()
    calls = trace.tool_calls
    are_reported = trace.source not in _LISTS or any(call.status != "unknown" for call in calls)
    useless, useful = set[str](), set[str]()
    for call in calls:
        has_no_result = are_reported and call.status == "unknown" and call.result is None
        gave_nothing = call.failed or call.status in _UNSUCCESSFUL or has_no_result
        (useless if gave_nothing else useful).add(_call_key(call))
    return frozenset(useless - useful)


def _call_key(call: ToolCall | ToolCallStep) -> str:
    """The key of a call: its id, else its name and arguments."""
    return call.id or json.dumps([call.name, dict(call.arguments)], sort_keys=True, default=str)


def _loaded(arguments: JsonObject) -> Iterator[str]:
    """Skills loaded with a skill tool: `{"skill": "docs:pdf"}`, in which `docs` is a plugin."""
    named = next((one for key in _NAMED_BY if isinstance(one := arguments.get(key), str)), "")
    if named:
        yield named.removeprefix("/").rpartition(":")[2]


def _read(arguments: JsonObject) -> Iterator[str]:
    """Skills whose files a read tool read, by the paths among its arguments."""
    for key in _PATHS:
        value = arguments.get(key)
        for one in value if isinstance(value, list | tuple) else (value,):
            path = one.get("path") if isinstance(one, Mapping) else one
            name = skill_at(path) if isinstance(path, str) else None
            if name is not None:
                yield name


def skill_at(path: str) -> str | None:
    """The skill of a file, or None: the directory of a `SKILL.md`; for other files, the directory below `skills/`.

    In a path from a shell command, the name may be a pattern.
    """
    parts = path.replace("\\", "/").split("/")
    name = None
    if parts[-1] == SKILL_FILE and len(parts) > 1:
        name = parts[-2]
    elif _SKILLS in parts[:-2]:
        name = parts[len(parts) - 1 - parts[::-1].index(_SKILLS, 2) + 1]
    return name if name and name not in {".", ".."} and _UNKNOWN.isdisjoint(name) else None


def _printed(arguments: JsonObject) -> Iterator[str]:
    """Skills whose `SKILL.md` a command printed."""
    for key in _COMMANDS:
        value = arguments.get(key)
        if isinstance(value, Mapping):
            yield from _printed(value)
        elif isinstance(value, str):
            yield from _in_line(value, _DEEPEST)
        elif isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
            yield from _in_words([str(word) for word in value], "", _DEEPEST)


def _in_line(line: str, depth: int) -> Iterator[str]:
    """The skills that a line of shell commands prints."""
    if SKILL_FILE not in line or depth < 1:
        return
    directory = ""
    for words in _commands_of(line[:_LONGEST_COMMAND]):
        if words[0] == "cd" and len(words) > 1:
            directory = str(PurePosixPath(directory, words[1]))
        else:
            yield from _in_words(words, directory, depth)


def _commands_of(line: str) -> Iterator[list[str]]:
    """Yield the words of each command of a line whose output is not redirected; none if a quote is unclosed."""
    import shlex  # only needed for the few calls that name a skill

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
        elif "<" not in part:  # the file of an input redirection counts as an argument
            if words and is_seen:
                yield words
            words, is_seen, is_target = [], True, False


def _in_words(words: Sequence[str], directory: str, depth: int) -> Iterator[str]:
    """The skills that a command prints if it runs in a directory."""
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
"""Canonical name of a tool → (its lower-case names in transcripts of unknown agents, function from a call's arguments
to the skills that the call gave the agent). Calls of other tools do not count."""
