"""Copies of a workspace for a judge, and workspaces that are kept after their trial.

Agents read instructions, settings, skills, hooks and servers from their working directory, and git runs commands from
a repository's configuration. The judged agent may have planted such files, so they are renamed in the copy for an agent
that judges. Links out of the copy are replaced by files that contain their targets.

An agent gets secrets in its environment and can write them to files. In a kept workspace, secrets are replaced in text
files. A binary file, or one too large to rewrite, is removed if it contains a secret, and so is a file or directory
with a secret in its name. Compressed files are not decompressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from agentv.extensions.agents.workspaces.placing import remove_directory
from agentv.extensions.agents.workspaces.snapshot import BINARY_WITHIN, Snapshot
from agentv.model.redaction import REDACTED, Redactor

SUFFIX = ".data"
"""Suffix of renamed files and directories."""

_NAMES = frozenset(
    {
        *("agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "context.md"),
        *("copilot-instructions.md", "system.md", ".cursorrules", ".windsurfrules", ".clinerules", ".mcp.json"),
        *("opencode.json", "opencode.jsonc", ".env", ".envrc", ".git", ".gitmodules", ".gitattributes"),
        *(".claude", ".claude-plugin", ".codex", ".gemini", ".agents", ".opencode", ".copilot", ".cursor", ".pi"),
        *(".vscode", ".continue", ".aider.conf.yml", ".geminiignore"),
    }
)
_OF_GITHUB = frozenset({"agents", "skills", "instructions", "prompts", "hooks"})
"""Directories in `.github` that Copilot reads."""


def disarm(directory: str) -> None:
    """Rename files that agents or git would act on, and replace links that lead out of a copy. Blocks.

    Raises:
        OSError: a file cannot be renamed or written.
    """
    root = os.path.realpath(directory)
    for top, folders, files in os.walk(root, topdown=False):
        for name in (*folders, *files):
            path = Path(top, name)
            if path.is_symlink() and not _is_inside(path, root):
                target = path.readlink()
                path.unlink()
                path = _unused_path(path)
                path.write_text(f"a link to {target}\n", errors="surrogateescape")
            elif name.casefold() in _NAMES or (Path(top).name == ".github" and name.casefold() in _OF_GITHUB):
                path.rename(_unused_path(path))


def digest_of(snapshot: Snapshot) -> str:
    """Return a hash of the paths, modes and contents of a workspace's files."""
    facts = sorted((path, one.mode, one.sha256, one.special) for path, one in snapshot.items())
    return sha256(repr(facts).encode()).hexdigest()


def _is_inside(link: Path, root: str) -> bool:
    resolved = os.path.realpath(link)
    return not link.readlink().is_absolute() and f"{resolved}{os.sep}".startswith(f"{root}{os.sep}")


def _unused_path(path: Path) -> Path:
    """Return the path with the suffix, repeated until no file has this name."""
    while os.path.lexists(path := path.with_name(path.name + SUFFIX)):
        pass
    return path


_REWRITE_LIMIT = 20_000_000
"""Size in bytes above which a file is not rewritten."""

_OVERLAP = 8_192


def remove_secrets(directory: str, redactor: Redactor) -> list[str]:
    """Remove secrets from all files below a directory; return a line for each change. Blocks.

    Raises:
        OSError: a file cannot be read or written.
    """
    done: list[str] = []
    if not redactor:
        return done
    for folder, folders, files in os.walk(directory, topdown=False):
        for path in (Path(folder, name) for name in (*files, *folders)):
            shown = redactor.redact(os.path.relpath(path, directory))
            how = _clean(path, redactor)
            if how:
                done.append(f"{shown}: {how}")
    return sorted(done)


def _clean(path: Path, redactor: Redactor) -> str:
    """Remove secrets from a path and its content; return what was done, or an empty string if there were none."""
    names = (path.name, str(path.readlink())) if path.is_symlink() else (path.name,)
    if any(redactor.redact(name) != name for name in names):
        remove_directory(str(path))
        return "removed, since a secret was part of its name or of where it leads"
    if path.is_symlink() or not path.is_file():
        return ""
    if path.stat().st_size > _REWRITE_LIMIT:
        return _remove_if(path, any(redactor.spans_in(_text(block)) for block in _blocks(path)))
    data = path.read_bytes()
    clean = redactor.redact(_text(data)).encode(errors="surrogateescape")
    if clean == data:
        return ""
    if b"\0" in data[:BINARY_WITHIN]:
        return _remove_if(path, True)
    new = path.with_name(f".{os.getpid()}.clean")
    new.write_bytes(clean)
    new.chmod(path.stat().st_mode & 0o777)
    new.replace(path)  # other hard links keep the old file
    return f"secrets replaced by {REDACTED}"


def _remove_if(path: Path, contains_secret: bool) -> str:
    if not contains_secret:
        return ""
    path.unlink()
    return "removed, since it contained a secret and is no text that can be rewritten"


def _blocks(path: Path) -> Iterator[bytes]:
    rest = b""
    with path.open("rb") as file:
        while block := file.read(_REWRITE_LIMIT):
            yield rest + block
            rest = block[-_OVERLAP:]


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
