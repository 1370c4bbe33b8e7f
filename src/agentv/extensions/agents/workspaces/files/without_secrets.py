"""Removal of secrets from a workspace that is kept: an agent gets them in its environment, and can write them down.

In text they are replaced. A file that is no text, or is too large to be rewritten, is removed where a secret stands in
it, and so is what has one in its name. Compressed files are not looked into.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from agentv.model.secrets.redaction import REDACTED, Redactor

_REWRITTEN = 20_000_000
"""Bytes up to which a file is rewritten."""

_OVERLAP = 8_192
_BINARY_WITHIN = 8_000


def remove_secrets(directory: str, redactor: Redactor) -> list[str]:
    """Take the secrets out of all files below a directory; what was done, one line each. It blocks.

    Raises:
        OSError: a file cannot be read or written.
    """
    return sorted(_removed(directory, redactor)) if redactor else []


def _removed(directory: str, redactor: Redactor) -> Iterator[str]:
    for folder, folders, files in os.walk(directory, topdown=False):
        for name in files:
            path = Path(folder, name)
            shown = redactor.redact(os.path.relpath(path, directory))
            how = _without_secrets(path, name, redactor)
            if how:
                yield f"{shown}: {how}"
        for name in folders:
            path = Path(folder, name)
            if redactor.redact(name) != name or (path.is_symlink() and _names_secret(path, redactor)):
                shown = redactor.redact(os.path.relpath(path, directory))
                _rename(path, redactor.redact(name))
                yield f"{shown}: renamed"


def _without_secrets(path: Path, name: str, redactor: Redactor) -> str:
    """Clean one file; how. Empty: there was no secret."""
    if redactor.redact(name) != name or (path.is_symlink() and _names_secret(path, redactor)):
        path.unlink()
        return "removed, since a secret was part of its name or of where it leads"
    if path.is_symlink() or not path.is_file():
        return ""
    if path.stat().st_size > _REWRITTEN:
        return _removed_if(path, any(redactor.stretches(_text(block)) for block in _blocks(path)))
    data = path.read_bytes()
    clean = redactor.redact(_text(data)).encode(errors="surrogateescape")
    if clean == data:
        return ""
    if b"\0" in data[:_BINARY_WITHIN]:
        return _removed_if(path, True)
    new = path.with_name(f".{os.getpid()}.clean")
    new.write_bytes(clean)
    new.chmod(path.stat().st_mode & 0o777)
    new.replace(path)  # other hard links keep the old file
    return f"secrets replaced by {REDACTED}"


def _removed_if(path: Path, holds: bool) -> str:
    if not holds:
        return ""
    path.unlink()
    return "removed, since it contained a secret and is no text that can be rewritten"


def _rename(path: Path, name: str) -> None:
    if path.is_symlink():
        path.unlink()
    else:
        path.rename(path.with_name(name))


def _names_secret(path: Path, redactor: Redactor) -> bool:
    target = str(path.readlink())
    return redactor.redact(target) != target


def _blocks(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while block := file.read(_REWRITTEN):
            yield rest + block
            rest = block[-_OVERLAP:]


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
