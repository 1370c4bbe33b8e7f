"""Files on git hosts: parsing their URLs and finding them in a checkout (SPEC section 5)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import parse_qs, unquote

from agentv.authoring.source.boundary import GIT_URL, Boundary, FindCheckout
from agentv.authoring.source.masking import is_secret
from agentv.authoring.source.nearest import did_you_mean, nearest
from agentv.authoring.source.nodes import Scalar
from agentv.authoring.source.report import Report
from agentv.model.suite.files import Checkout, RepositoryFile, Unavailable
from agentv.model.values.formatting import plural
from agentv.model.values.values import lazy_pattern

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_FORMS = {
    "github.com": (
        rf"(?P<repository>{_NAME}/{_NAME})/blob/(?P<rest>.+)",
        "https://github.com/OWNER/REPO/blob/REF/PATH",
    ),
    "gitlab.com": (
        rf"(?P<repository>{_NAME}(?:/{_NAME})+?)/(?:-/)?blob/(?P<rest>.+)",
        "https://gitlab.com/GROUP/REPO/-/blob/REF/PATH",
    ),
    "bitbucket.org": (
        rf"(?P<repository>{_NAME}/{_NAME})/src/(?P<rest>.+)",
        "https://bitbucket.org/OWNER/REPO/src/REF/PATH",
    ),
}
"""Host → the pattern of a file's URL after the host, and the form shown in hints."""

NOTHING_ABOVE = "a file from a git host cannot refer to files outside its repository"
"""Note for a missing file if no path was tried."""

_UNPRINTABLE = lazy_pattern(r"[\x00-\x1f\x7f]")
_LFS_POINTER = "version https://git-lfs.github.com/spec/v"
LFS_LONGEST = 1024
"""Maximum size of a pointer file in bytes, as Git LFS defines it."""

_UNITS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))


class BadUrlError(ValueError):
    """A git host's URL does not point to a file. `hint` says what to write instead."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def parse_url(url: str) -> RepositoryFile:
    """The file that a URL points to.

    Raises:
        BadUrlError: the URL does not point to a file of a git host.
    """
    match = GIT_URL.match(url)
    if match is None:
        raise BadUrlError("this is not a URL of a git host", "")
    host = match["host"]
    pattern, form = _FORMS[host]
    address, _, fragment = url[match.end() :].partition("#")
    path, _, query = address.partition("?")
    if match["user"] or any(map(is_secret, parse_qs(query))):
        raise BadUrlError(
            "this URL contains a user or a token, which is not used: git's own credentials are",
            "write the URL without it, and give git access to the repository: a credential helper, or an SSH key",
        )
    if fragment:
        raise BadUrlError(
            f"only whole files can be used, but '#{fragment}' is a part of one", f"write it without '#{fragment}'"
        )
    found = re.fullmatch(pattern, path)
    if found is None:
        raise BadUrlError(f"this URL does not point to a file of a repository on {host}", f"write {form}")
    ref_type = parse_qs(query).get("ref_type", [""])[0]  # only GitLab has this parameter
    kind = ref_type if ref_type in {"heads", "tags"} else ""
    rest = _parts(found["rest"], form)
    return RepositoryFile(host, found["repository"].removesuffix(".git"), rest, kind)


def _parts(written: str, form: str) -> tuple[str, ...]:
    try:
        rest = unquote(written, errors="strict")
    except UnicodeDecodeError:
        raise BadUrlError("this URL is not UTF-8 after decoding its '%' escapes", f"write {form}") from None
    parts = tuple(rest.split("/"))
    issues = {
        "this URL contains a control character": _UNPRINTABLE.search(rest),
        "this URL leaves its repository with '..'": ".." in parts,
        "a part of the path in this URL is empty, or '.'": "" in parts or "." in parts,
        f"this URL has no path after '{written}'": len(parts) < 2,
    }
    if (issue := next((message for message, found in issues.items() if found), None)) is not None:
        raise BadUrlError(issue, f"write {form}")
    return parts


def find_hosted(
    url: str, node: Scalar, what: str, report: Report, checkout: FindCheckout, boundary: Boundary | None = None
) -> str | None:
    """The path on disk of a file or directory of a git host, or None after reporting why none exists."""
    try:
        wanted = parse_url(url)
    except BadUrlError as error:
        report.error("bad-git-url", node, str(error), hint=error.hint or None)
        return None
    found = checkout(wanted)
    if isinstance(found, Unavailable):
        notes = [found.reason] if found.reason else ()
        report.error(found.code, node, found.message, hint=_nearest_ref(wanted, found.known), notes=notes)
        return None
    if found.age_s is not None:
        size, unit = next(((size, unit) for size, unit in _UNITS if found.age_s >= size), _UNITS[-1])
        count = int(found.age_s / size)
        message = f"{wanted.name} cannot be read now; using '{found.ref}' as of {plural(count, unit)} ago"
        report.warning("stale-repository", node, message, notes=[found.reason])
    if boundary is not None:
        boundary.add(found)
    path = str(Path(found.tree) / found.path)
    missing = _missing(found, what, wanted.name)
    if missing is not None:
        report.error("missing-file", node, missing, hint=_sibling(found))
        return None
    if _holds_pointer(path):
        message = f"'{found.path}' is stored in Git LFS; {wanted.name} contains only a pointer to it"
        report.error("lfs-pointer", node, message, hint="download it, and use its path")
        return None
    return path


def is_lfs_pointer(text: str) -> bool:
    """Whether a text is a Git LFS pointer."""
    return text.startswith(_LFS_POINTER) and len(text) <= LFS_LONGEST


def _holds_pointer(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return is_lfs_pointer(file.read(LFS_LONGEST + 1).decode(errors="replace"))


def _missing(found: Checkout, what: str, repository: str) -> str | None:
    """A message saying why the path is missing from the checkout, or None if it exists."""
    path, tree = Path(found.path), Path(found.tree)
    above = [str(one) for one in (path, *path.parents)]
    link = next((one for one in above if one in found.outside), None)
    if link is not None:
        return f"'{link}' of {repository} is a symlink that leads out of the repository; it is not followed"
    if (tree / path).exists():
        return None
    folder = next(tree / one for one in path.parents if (tree / one).exists())
    if folder != tree and folder.is_dir() and not any(folder.iterdir()):
        inside = folder.relative_to(tree)
        return f"{what} '{path}' is in '{inside}', a submodule of {repository}; submodules are not fetched"
    return f"{what} '{path}' does not exist in {repository} at '{found.ref}'"


def _sibling(found: Checkout) -> str | None:
    """A hint with the most similar name in the missing file's directory, or None."""
    path = Path(found.path)
    folder = Path(found.tree) / path.parent
    near = nearest(path.name, [one.name for one in folder.iterdir()]) if folder.is_dir() else None
    return f"did you mean '{path.with_name(near)}'?" if near and near != path.name else None


def _nearest_ref(wanted: RepositoryFile, known: Iterable[str]) -> str | None:
    """A hint with the branch or tag most similar to the URL's first parts, among those with as many parts; or None."""
    for parts in range(1, len(wanted.rest)):
        hint = did_you_mean("/".join(wanted.rest[:parts]), [one for one in known if one.count("/") == parts - 1])
        if hint:
            return hint
    return None
