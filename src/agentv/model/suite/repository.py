"""Files in repositories on git hosts: what is asked for, where it lies on disk, or why it does not."""

from __future__ import annotations

from msgspec import Struct


class RepositoryFile(Struct, frozen=True):
    """A file that a URL of a git host names (SPEC section 5).

    Attributes:
        host: `github.com`.
        repository: `acme/evals`.
        rest: the parts of `REF/PATH`. A branch may hold slashes, so only the repository knows where the path begins.
        kind: `heads` or `tags` where the URL says which of them the ref is, else empty.
    """

    host: str
    repository: str
    rest: tuple[str, ...]
    kind: str = ""

    @property
    def name(self) -> str:
        """What a message calls the repository."""
        return f"{self.host}/{self.repository}"


class Checkout(Struct, frozen=True):
    """One commit of a repository as plain files.

    Attributes:
        tree: the directory that holds them; it never changes.
        path: of the file that was asked for, below `tree`. It need not exist.
        ref: the branch, tag or commit, as it was asked for.
        outside: links of the commit that lead out of it, which were left out.
        age_s: None, or since when the ref was last looked up, in seconds: it cannot be read now.
        reason: why it cannot, as a sentence.
    """

    tree: str
    path: str
    ref: str
    outside: frozenset[str] = frozenset()
    age_s: float | None = None
    reason: str = ""


class Unavailable(Struct, frozen=True):
    """Why there is no checkout.

    Attributes:
        code: a slug of `agentv.codes.FILES`.
        reason: what is behind it, as a sentence.
        known: the branches and tags that there are, where the one that was asked for is not among them.
    """

    code: str
    message: str
    reason: str = ""
    known: tuple[str, ...] = ()
