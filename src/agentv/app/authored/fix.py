"""`agentv validate --fix`: older spellings become canonical ones, and every suite means what it meant."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agentv.app.authored.equivalence import meaning
from agentv.app.registries import registries
from agentv.authoring.convert.rewriting import Rename, rewritten
from agentv.authoring.loading.load import Loaded, LoadRequest, load
from agentv.errors import Diagnostic, LoadError

_AUTHORED = (".yaml", ".yml", ".jsonl")


@dataclass(frozen=True, slots=True)
class Fixed:
    """Result of `--fix`.

    Attributes:
        files: absolute path → how many spellings were rewritten in it.
        left: older spellings that stay: a rewrite would change the meaning of a suite, or they are not in a block.
    """

    files: Mapping[str, int]
    left: tuple[Diagnostic, ...]


def fix(paths: tuple[str, ...], process_env: Mapping[str, str]) -> Fixed:
    """Rewrite the files; a file is written whole or not at all.

    Raises:
        LoadError: a file is invalid, so its meaning is unknown. Nothing was written.
        UsageError: a path does not exist, or a directory holds no eval file.
        OSError: a file cannot be written.
    """
    request = LoadRequest(paths, process_env=process_env, for_run=False)
    before = load(request, registries())
    older = [found for found in before.diagnostics if found.rename is not None and found.span is not None]
    groups: dict[tuple[str, tuple[str, str]], list[Rename]] = defaultdict(list)
    for found in older:
        if found.span is not None and found.rename is not None and found.span.file.endswith(_AUTHORED):
            groups[found.span.file, found.rename].append(Rename(found.span, *found.rename))
    edits = _edits(groups.values())
    if edits and not _agrees(before, edits, request):
        edits = _edits(_that_keep_themeaning(before, groups, request))
    write_all(edits)
    after = load(request, registries())
    left = tuple(found for found in after.diagnostics if found.rename is not None)
    counts = {path: _count(older, path) - _count(left, path) for path in edits}
    return Fixed({path: count for path, count in counts.items() if count}, left)


def _that_keep_themeaning(
    before: Loaded, groups: Mapping[tuple[str, tuple[str, str]], list[Rename]], request: LoadRequest
) -> list[list[Rename]]:
    """As many groups as can be rewritten together: each is tried on top of those before it."""
    safe: list[list[Rename]] = []
    for group in groups.values():
        if _agrees(before, _edits([*safe, group]), request):
            safe.append(group)
    return safe


def _edits(groups: Iterable[Sequence[Rename]]) -> dict[str, bytes]:
    by_file: dict[str, list[Rename]] = defaultdict(list)
    for group in groups:
        by_file[group[0].span.file] += group
    found: dict[str, bytes] = {}
    for path, renames in by_file.items():
        text = Path(path).read_bytes().decode()
        edited = rewritten(text, renames)
        if edited != text:
            found[path] = edited.encode()
    return found


def _agrees(before: Loaded, edits: Mapping[str, bytes], request: LoadRequest) -> bool:
    try:
        after = load(replace(request, edits=edits), registries())
    except LoadError:
        return False
    return [meaning(suite) for suite in before.suites] == [meaning(suite) for suite in after.suites]


def _count(found: Iterable[Diagnostic], path: str) -> int:
    return sum(one.span is not None and one.span.file == path for one in found)


def write_all(edits: Mapping[str, bytes]) -> None:
    """Write files, each in one step; none if one of them cannot be written. A link stays a link.

    What is new is written to files beside the old ones first: whenever this is killed, every file is whole.

    Args:
        edits: path → its new bytes.

    Raises:
        OSError: a directory cannot be written, or the disk is full.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for path, data in edits.items():
            real = Path(path).resolve()
            beside = real.with_name(f".{real.name}.agentv-fix")
            staged.append((beside, real))
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.chmod(real.stat().st_mode & 0o7777)
        for beside, real in staged:
            os.replace(beside, real)  # noqa: PTH105  # one step, as the system gives it
    finally:
        for beside, _ in staged:
            beside.unlink(missing_ok=True)
