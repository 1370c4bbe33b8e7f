"""Parsing of the branch, tag or commit at the start of a URL path. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentv.model.suite.repository import RepositoryFile

FULL_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
SHORT_SHA = re.compile(r"[0-9a-f]{7,63}")
_LINE = re.compile(r"(?P<sha>[0-9a-f]{40,64})\t(?P<ref>HEAD|refs/(?:heads|tags)/[^\x00-\x20\x7f:*?\[\\^~]+)(?:\^\{\})?")
"""What git allows in a name and no more: it becomes part of a command line."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A ref that a URL may mean. `parts`: so many of the URL's parts are its name."""

    ref: str
    sha: str
    parts: int

    @property
    def short(self) -> str:
        """As people call it."""
        return self.ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def listed(output: bytes) -> dict[str, str]:
    """Ref → commit, out of what `git ls-remote` prints. A tag that is an object stands for what it tags."""
    found: dict[str, str] = {}
    for line in output.decode(errors="surrogateescape").splitlines():
        match = _LINE.fullmatch(line)
        if match:
            found[match["ref"]] = match["sha"]  # the peeled one follows and wins
    return found


def fitting(wanted: RepositoryFile, refs: Mapping[str, str]) -> list[Fit]:
    """Every ref that the URL may mean and that leaves a path: one, but where a branch and a tag are in the way."""
    if wanted.rest[0] == "HEAD" and "HEAD" in refs:
        return [Fit("HEAD", refs["HEAD"], 1)]
    kinds = (wanted.kind,) if wanted.kind else ("heads", "tags")
    explicit = wanted.rest[:2] in {("refs", "heads"), ("refs", "tags")}
    begins = [""] if explicit else [f"refs/{kind}/" for kind in kinds]
    names = {begin + "/".join(wanted.rest[:parts]): parts for parts in range(1, len(wanted.rest)) for begin in begins}
    return [Fit(ref, refs[ref], parts) for ref, parts in names.items() if ref in refs]
