"""Placeholders such as `{PROMPT}` in the command of a `cli` target: validated at load, filled in for each call.

Text from a case never becomes part of a shell command. There a placeholder is replaced by a quoted reference
(`"$AGENTV_PROMPT"`, or `"$@"` for the files), and the value is passed in the environment. In a command that is a list,
no shell is involved, so the value replaces the placeholder directly. So does the path of a file that agentv creates
for the call, even inside quotes and scripts, because no text of a case is in it.

To find whether a placeholder is bare, quoted or in a here-document, this module parses as much of the shell's grammar
as quoting needs (POSIX.1-2024, XCU 2.2, 2.3 and 2.6). The result decides only how the reference to a variable is
written. A mistake in this parser can therefore not run an answer or a prompt as code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from msgspec.structs import replace

from agentv.matching.spelling import nearest
from agentv.registry.fields import Command, Issue

FILES = "FILES"
MCP_CONFIG = "MCP_CONFIG"
NAMES = (
    *("PROMPT", "PROMPT_FILE", "OUTPUT_FILE", FILES, "EVAL_ID", "ATTEMPT", "OPTIONS", "CONTEXT", "WORKSPACE"),
    MCP_CONFIG,
)
"""The placeholders of SPEC section 12, including the path of the workspace, the path of the MCP configuration, and
promptfoo's `options` and `context` as JSON."""

_OWN_FILES = frozenset({"PROMPT_FILE", "OUTPUT_FILE", MCP_CONFIG})
"""Placeholders whose value is the path of a file that agentv creates for the call."""

_LITERAL_CONTEXTS = frozenset({"single quotes", "double quotes", "a here-document"})
"""Contexts in which such a path is inserted unchanged."""

SIMILAR = 0.7
"""Similarity to a placeholder, from 0 to 1, from which an unknown name in braces is reported as misspelt."""

_SHELLS = re.compile(r"(?:ba|da|z|k|mk|fi|a|c|tc)?sh")
_INTERPRETERS = (
    (_SHELLS, re.compile(r"-\w*c")),
    (re.compile(r"(?:python|pypy|pwsh|powershell)[\d.]*"), re.compile(r"-\w*c|-Command")),
    (re.compile(r"(?:node|bun|deno|perl|ruby|lua|Rscript)[\d.]*"), re.compile(r"-\w*[ep]|-E|--eval|--print|eval")),
    (re.compile(r"php[\d.]*"), re.compile(r"-r|--run")),
    (re.compile(r"su|runuser|script"), re.compile(r"-\w*c|--command")),
)
"""Programs that run an argument as code, with the option that precedes the code."""

_JOINS_ARGUMENTS = frozenset({"eval", "ssh", "watch", "parallel"})
"""Commands that join all their arguments, quoted or not, into a shell command."""

_COMMAND_PREFIX = re.compile(
    r"\w+=.*|then|do|else|if|elif|while|until|!|\{|time|exec|command|builtin|env|nice|nohup|setsid|sudo|stdbuf|timeout"
    r"|sshpass|xargs"
)
"""Words that can precede the name of a command: assignments, shell keywords, and programs that run another."""

_QUOTED = re.compile(r"'([^']*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_SEPARATOR = re.compile(r"[\s;|&()`<>]")


@dataclass(frozen=True, slots=True)
class CommandPlan:
    """A parsed command with placeholders.

    Attributes:
        uses: the names of the placeholders in it.
        line: the parts of a shell command. Literal text alternates with names of placeholders for files of agentv's
            own.
    """

    command: Command
    uses: frozenset[str]
    line: tuple[str, ...] = ()

    def filled(self, values: Mapping[str, str], files: Sequence[str]) -> tuple[Command, Mapping[str, str]]:
        """Return the command to run, and the environment variables to add.

        Args:
            values: a value for every placeholder in `uses` except FILES.
            files: the arguments for the files attached to the input.
        """
        if self.command.shell is None:
            words = [word for one in self.command.argv for word in _filled_word(one, values, files)]
            return replace(self.command, argv=tuple(words)), {}
        if not self.uses:
            return self.command, {}
        line = "".join(values[one] if place % 2 else one for place, one in enumerate(self.line))
        run = ("/bin/sh", "-c", line, "sh", *(files if FILES in self.uses else ()))
        return replace(self.command, argv=run, shell=None), {f"AGENTV_{name}": values[name] for name in values}


def plan_command(command: Command) -> CommandPlan:
    """Parse a command that `command_issues` found valid."""
    if command.shell is None:
        uses = frozenset(word[1] for one in command.argv for word in WORD.finditer(one) if word[1] in NAMES)
        return CommandPlan(command, uses)
    filled = [
        one
        for one in words_in_braces(command.shell)
        if one.name in NAMES and (one.where == "bare" or _is_own_file(one))
    ]
    line, pieces, at = command.shell, [""], 0
    for one in filled:
        pieces[-1] += line[at : one.begin]
        if _is_own_file(one):
            pieces += [one.name, ""]
        else:
            pieces[-1] += '"$@"' if one.name == FILES else f'"$AGENTV_{one.name}"'
        at = one.end
    pieces[-1] += line[at:]
    return CommandPlan(command, frozenset(one.name for one in filled), tuple(pieces))


def _is_own_file(one: BracedWord) -> bool:
    """Whether the placeholder is replaced by a path directly, without a shell variable."""
    return one.name in _OWN_FILES and one.where in _LITERAL_CONTEXTS


def _filled_word(word: str, values: Mapping[str, str], files: Sequence[str]) -> list[str]:
    """Return the argument, or one argument per file if the word contains `{FILES}`.

    Placeholders in values are not replaced.
    """

    def fill(file: str) -> str:
        return WORD.sub(lambda found: file if found[1] == FILES else values.get(found[1], found[0]), word)

    return [fill(file) for file in files] if f"{{{FILES}}}" in word else [fill("")]


def command_issues(command: Command) -> Iterator[Issue]:
    """Report placeholders that are misspelt, would run as code, or have no effect where they are."""
    if command.shell is not None:
        yield from _line_issues(command.shell)
        return
    scripts = _code_arguments(command.argv)
    for index, one in enumerate(command.argv):
        for word in WORD.finditer(one):
            if word[1] not in NAMES:
                yield from _misspelt(word[1], ("command", index))
            elif index in scripts and (word[1] not in _OWN_FILES or word[0] == one):
                yield _code_issue(("command", index), word[0], scripts[index])


def _line_issues(line: str) -> Iterator[Issue]:
    for found in words_in_braces(line):
        word = f"{{{found.name}}}"
        if found.where == "a shell variable":
            if found.name in NAMES:
                message = f"${word} is a shell variable; the placeholder is {word}"
                yield Issue(("command",), message, "shell-variable", warning=True)
        elif found.name not in NAMES:
            yield from _misspelt(found.name, ("command",))
        elif _is_own_file(found):
            continue
        elif found.where != "bare":
            hint = "remove the quotes: agentv quotes it"
            yield Issue(("command",), f"{word} is inside {found.where}", "quoted-placeholder", hint)
        elif (words := _simple_command(line, found)) and len(words) - 1 in (scripts := _code_arguments(words)):
            yield _code_issue(("command",), word, scripts[len(words) - 1])


def _code_issue(path: tuple[str | int, ...], word: str, option: str) -> Issue:
    hint = "pass it as a separate argument, or read the prompt from stdin"
    return Issue(path, f"{word} after '{option}' would be run as code", "placeholder-in-script", hint)


def _misspelt(name: str, path: tuple[str | int, ...]) -> Iterator[Issue]:
    near = nearest(name, NAMES, SIMILAR)
    if near is not None:
        yield Issue(path, f"no placeholder {{{name}}}", "unknown-placeholder", f"did you mean '{{{near}}}'?")


def _simple_command(line: str, placed: BracedWord) -> list[str]:
    """Return the words of the simple command around a placeholder, up to the word that contains it.

    The list is empty if the placeholder is the target of a redirection.
    """
    before = _QUOTED.sub(lambda quoted: _SEPARATOR.sub("_", quoted[1] or quoted[2] or "_"), line[: placed.begin])
    if before.rstrip().endswith(("<", ">")):
        return []
    return re.split(r"[;|()`\n]|(?<![<>])&", f"{before}{{{placed.name}}}")[-1].split()


def _code_arguments(words: Sequence[str]) -> dict[int, str]:
    """Map the index of each argument that is run as code to the word that causes it, such as `-c` in `sh -c CODE`."""
    found: dict[int, str] = {}
    for index, word in enumerate(words):
        program = PurePath(word).name
        for interpreter, option in _INTERPRETERS:
            if interpreter.fullmatch(program):
                found |= _code_after(index + 1, words, option)
        if program in _JOINS_ARGUMENTS and (index == 0 or _COMMAND_PREFIX.fullmatch(words[0])):
            found |= dict.fromkeys(range(index + 1, len(words)), program)
    return found


def _code_after(index: int, words: Sequence[str], option: re.Pattern[str]) -> dict[int, str]:
    code = ""
    while index < len(words) and (words[index].startswith("-") or option.fullmatch(words[index])):
        code = words[index] if option.fullmatch(words[index]) else code
        index += 1
        if code and (index == len(words) or not words[index].startswith("-")):
            return {index: code}
    return {}


Where = Literal[
    "bare", "single quotes", "double quotes", "arithmetic", "${…}", "quoted ${…}", "a here-document", "a shell variable"
]


@dataclass(frozen=True, slots=True)
class BracedWord:
    """A word in braces, such as `{PROMPT}`: its name, its span in the line, and its shell context."""

    name: str
    begin: int
    end: int
    where: Where


WORD = re.compile(r"\{([A-Z_]+)\}")

_TOKEN = re.compile(
    r"""(?P<escaped>\\.) | (?P<single>\$?') | (?P<word>\$?\{[A-Z_]+\}) | (?P<bracket>["`()}] | \$\(\(? | \$\{) | <<<
    | (?P<document><<-?[ \t]*['"\\]?(?P<delimiter>[\w.-]+)['"]?)
    | (?P<comment>(?:^|(?<=[\s;&|(]))\#[^\n]*) | (?P<newline>\n)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTES = {"'": re.compile(r"[^']*'?"), "$'": re.compile(r"(?:[^'\\]|\\.)*'?", re.DOTALL)}
"""Opening quote → pattern of the quoted text and the closing quote."""

_OPENS: dict[Where, dict[str, tuple[Where, str]]] = {
    "bare": {
        '"': ("double quotes", '"'),
        "`": ("bare", "`"),
        "$(": ("bare", ")"),
        "(": ("bare", ")"),
        "${": ("${…}", "}"),
    },
    "double quotes": {"`": ("bare", "`"), "$(": ("bare", ")"), "${": ("quoted ${…}", "}")},
    "arithmetic": {"$(": ("bare", ")"), "(": ("arithmetic", ")"), "${": ("${…}", "}"), "`": ("bare", "`")},
    "${…}": {'"': ("double quotes", '"'), "`": ("bare", "`"), "$(": ("bare", ")"), "${": ("${…}", "}")},
    "quoted ${…}": {"`": ("bare", "`"), "$(": ("bare", ")"), "${": ("quoted ${…}", "}")},
}
"""Context → the tokens that open a nested context, each with the new context and the token that closes it."""

_QUOTABLE = frozenset({"bare", "${…}"})
"""Contexts in which a single quote starts a quoted text."""


def words_in_braces(line: str) -> Iterator[BracedWord]:
    """Yield the words in braces in a shell command, except those that are escaped or in a comment."""
    at = 0
    opened: list[tuple[Where, str]] = [("bare", "")]  # the open contexts, each with its closing token
    documents: list[str] = []  # delimiters of the here-documents that begin on the next line
    while (token := _TOKEN.search(line, at)) is not None:
        begin = at = token.end()
        where = opened[-1][0]
        match token.lastgroup:
            case "single" if where in _QUOTABLE:
                at = _end_of(_QUOTES[token[0]], line, at)
                yield from _within(line, begin, at, "single quotes")
            case "word":
                around: Where = "a shell variable" if token[0].startswith("$") else where
                yield BracedWord(token[0].strip("${}"), token.start(), token.end(), around)
            case "bracket":
                _bracket(token[0], opened)
            case "document" if where == "bare":
                documents.append(token["delimiter"])
            case "comment" if where != "bare":
                at = token.start() + 1
            case "newline" if where == "bare":
                for delimiter in documents:
                    end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE)
                    begin, at = at, _end_of(end, line, at)
                    yield from _within(line, begin, at, "a here-document")
                documents = []


def _bracket(bracket: str, opened: list[tuple[Where, str]]) -> None:
    """Close the innermost context or open a new one."""
    where, closer = opened[-1]
    if bracket == closer:
        opened.pop()
    elif bracket == "$((":
        opened += [("arithmetic", ")"), ("arithmetic", ")")]
    elif bracket in _OPENS[where]:
        opened.append(_OPENS[where][bracket])


def _within(line: str, begin: int, end: int, where: Where) -> Iterator[BracedWord]:
    for word in WORD.finditer(line, begin, end):
        yield BracedWord(word[1], word.start(), word.end(), where)


def _end_of(pattern: re.Pattern[str], line: str, at: int) -> int:
    found = pattern.search(line, at)
    return found.end() if found else len(line)
