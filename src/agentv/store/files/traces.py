"""The files of a trace: `trace.json`, and beside it the agent's unchanged native stream."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from agentv.model.values.response import Failure
from agentv.model.values.trace import Trace
from agentv.model.values.trace_document import LARGEST_FILE, TRACE_FILE, document, native_name, parse


def artifact(directory: Path, named: str) -> Path | Failure:
    """Return the path of a file of a run, or a failure if it is outside the run's directory, also through symlinks.

    Args:
        directory: directory of the run.
        named: path relative to it.
    """
    root = directory.resolve()
    try:
        found = (root / named).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        return Failure("bad-trace", f"'{named[:80]}' is no path: {error}")
    if not found.is_relative_to(root):
        return Failure("bad-trace", f"'{named}' is outside the run's directory")
    return found


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """Paths of a trace's files; `native_path` is None without a native stream. `sha256` is the hash of `trace.json`."""

    trace_path: str
    native_path: str | None = None
    sha256: str = ""


def write(trace: Trace, directory: str | Path) -> TraceFiles:
    """Write `trace.json` and the native stream to a directory, which is created. Existing files are replaced.

    Lone surrogates become U+FFFD, and infinities null.

    Raises:
        OSError: a file cannot be written.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    native = native_name(trace) if trace.native else ""
    if native:
        _replace_file(folder / native, trace.native)
    content = document(trace)
    _replace_file(folder / TRACE_FILE, content)
    digest = sha256(content).hexdigest()
    return TraceFiles(str(folder / TRACE_FILE), str(folder / native) if native else None, digest)


def read(path: str | Path, *, native: bool = False) -> Trace | Failure:
    """Read a trace from a file, or return a failure `bad-trace` that names the line.

    Args:
        path: path of a `trace.json`.
        native: whether to also read the native stream beside it.
    """
    place = Path(path)
    try:
        if place.stat().st_size > LARGEST_FILE:
            return Failure("bad-trace", f"{place.name} is larger than {LARGEST_FILE / 1_000_000:g} MB")
        trace = parse(place.read_bytes(), place.name)
        if native and isinstance(trace, Trace) and trace.native_name:
            return replace(trace, native=place.with_name(trace.native_name).read_bytes())
    except OSError as error:
        return Failure("bad-trace", f"cannot read {Path(error.filename or place).name}: {error.strerror}")
    return trace


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically, readable only by its owner. An existing symlink is replaced, not followed."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
