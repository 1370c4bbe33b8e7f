"""Globs for relative paths: `*` and `?` match within a name, `**` across directories, `[…]` a set of characters."""

from __future__ import annotations

import re
from functools import lru_cache


class GlobError(ValueError):
    """A glob that cannot match any path below a directory; the message says why."""


def check_glob(pattern: str) -> None:
    """Raise an error if a glob is invalid or leads out of the directory.

    Raises:
        GlobError: it is empty or absolute, has a part `..`, or contains an invalid set, such as `[z-a]`.
    """
    parts = pattern.split("/")
    if not pattern.strip():
        raise GlobError("the path is empty")
    if pattern.startswith(("/", "~")):
        raise GlobError(f"'{pattern}' is absolute; paths are relative to the workspace")
    if ".." in parts:
        raise GlobError(f"'{pattern}' leads out of the workspace")
    if "\0" in pattern:
        raise GlobError("the path contains a NUL byte")
    try:
        glob_pattern(pattern)
    except re.error as error:
        raise GlobError(f"'{pattern}' is no pattern of paths: {error.msg}") from None


def is_glob(pattern: str) -> bool:
    """Whether a path contains a wildcard."""
    return any(character in pattern for character in "*?[")


@lru_cache(maxsize=1024)
def glob_pattern(glob: str, *, below: bool = False, parents: bool = False) -> re.Pattern[str]:
    """Return the regular expression that matches a whole path as the glob does.

    Args:
        glob: the glob; a trailing `/` matches everything in a directory.
        below: also match everything below a matching directory.
        parents: also match the directories that lead to the path: a file in place of one replaces everything below it.
    """
    words = [word for word in glob.removeprefix("./").split("/") if word != "."]
    if len(words) > 1 and words[-1] == "":
        words[-1] = "**"
    text = ""
    for place, word in enumerate(words):
        last = place == len(words) - 1
        if word == "**":
            text += ".*" if last else "(?:.*/)?"
        else:
            text += _word(word) + ("" if last else "/")
    inside = "(?:/.*)?" if below else ""
    return re.compile(f"(?:{text}){inside}{_replaced_parents(words) if parents else ''}", re.DOTALL)


def matches(glob: str, path: str) -> bool:
    """Whether a glob matches a relative path or a directory that contains it; case-sensitive."""
    return glob_pattern(glob, below=True).fullmatch(path) is not None


def _replaced_parents(words: list[str]) -> str:
    """Return alternatives that match the parent directories in a glob, up to the first `**`."""
    found = []
    for end in range(1, len(words)):
        head = words[:end]
        if "**" in head:
            break
        found.append("/".join(map(_word, head)))
    return "".join(f"|{one}" for one in found)


def _word(word: str) -> str:
    """Translate one path component with `*`, `?` and `[…]` to a regular expression."""
    text, place = "", 0
    while place < len(word):
        letter = word[place]
        end = word.find("]", place + 2) if letter == "[" else -1
        if end > 0:
            inside = word[place + 1 : end]
            negated = inside[:1] in {"!", "^"}
            text += f"[{'^/' if negated else ''}{re.escape(inside[negated:]).replace(re.escape('-'), '-')}]"
            place = end
        else:
            many = letter == "*" and text.endswith("[^/]*")  # a second star only makes matching slower
            text += "" if many else {"*": "[^/]*", "?": "[^/]"}.get(letter, re.escape(letter))
        place += 1
    return text
