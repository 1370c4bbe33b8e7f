"""The files that a suite's grades depend on, as they were when the suite was loaded, before any call."""

from __future__ import annotations

from msgspec import Struct, field

from agentv.model.suite.search_paths import SearchPaths


class GraderFiles(Struct):
    """What the files behind the assertions of a suite held when each was first read.

    A long file of cases is read again while they run; what was seen first is what counts.

    Attributes:
        digests: absolute path → sha256, in hex.
        reread: files that held something else when they were read again.
        unfollowed: what starts programs of which no file is known, as it is shown.
        starts: whether a program is started, of which no file need be known.
        functions: (file, module) of the Python code that is imported into this process, one of the two None → seconds
            that its import may take: the longest time limit of the entries that use it.
        search: where the suite's environment has code looked for; None: as this process.
    """

    digests: dict[str, str] = field(default_factory=dict)
    reread: set[str] = field(default_factory=set)
    starts: bool = False
    functions: dict[tuple[str | None, str | None], float] = field(default_factory=dict)
    unfollowed: dict[str, None] = field(default_factory=dict)
    search: SearchPaths | None = None

    def note(self, path: str, digest: str) -> None:
        """Remember what a file holds."""
        if self.digests.setdefault(path, digest) != digest:
            self.reread.add(path)
