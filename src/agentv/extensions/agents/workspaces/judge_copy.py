"""The copy of a workspace that an agent looks at as a judge: no file in it is taken for the judge's own settings.

Agents read instructions, settings, skills, hooks and servers from the directory that they work in, and git runs what
the configuration of a repository says. What the judged agent left may be made for that, so these are renamed in the
copy. Links out of it are replaced by files that say where they led.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from agentv.extensions.agents.workspaces.changes.snapshot import Snapshot

SUFFIX = ".data"
"""At the end of the names of renamed files and directories."""

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
    """Rename what agents and git take for their own, and replace links that lead out of a copy. It blocks.

    Raises:
        OSError: the system refuses.
    """
    root = os.path.realpath(directory)
    for top, folders, files in os.walk(root, topdown=False):
        for name in (*folders, *files):
            path = Path(top, name)
            if path.is_symlink() and not _is_inside(path, root):
                target = path.readlink()
                path.unlink()
                path = _free(path)
                path.write_text(f"a link to {target}\n", errors="surrogateescape")
            elif name.casefold() in _NAMES or (Path(top).name == ".github" and name.casefold() in _OF_GITHUB):
                path.rename(_free(path))


def digest_of(snapshot: Snapshot) -> str:
    """A hash of the files of a workspace."""
    facts = sorted((path, one.mode, one.sha256, one.special) for path, one in snapshot.files.items())
    return sha256(repr(facts).encode()).hexdigest()


def _is_inside(link: Path, root: str) -> bool:
    resolved = os.path.realpath(link)
    return not link.readlink().is_absolute() and f"{resolved}{os.sep}".startswith(f"{root}{os.sep}")


def _free(path: Path) -> Path:
    """The path with the suffix; with more of them where that is taken."""
    while os.path.lexists(path := path.with_name(path.name + SUFFIX)):
        pass
    return path
