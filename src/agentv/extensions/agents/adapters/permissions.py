"""Decisions on an agent's requests for permission."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from dataclasses import dataclass

from agentv.extensions.agents.adapters.settings import Decision, PermissionRule


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What an agent asks to do.

    Attributes:
        names: of the tool: canonical and native.
        kind: such as `edit`, as the agent says.
        paths: absolute paths of the files that it names.
    """

    names: tuple[str, ...]
    kind: str = ""
    paths: tuple[str, ...] = ()


def decide(policy: Decision | Sequence[PermissionRule], use: ToolUse, root: str) -> tuple[bool, str]:
    """Whether it may, and why: the first rule that applies; none does: it may not.

    Args:
        policy: of the target.
        use: what is asked for.
        root: the workspace, which the paths of rules count from.
    """
    if isinstance(policy, str):
        return policy == "allow", f"permissions: {policy}"
    for number, rule in enumerate(policy, 1):
        if _applies(rule, use, root):
            return rule.action == "allow", f"rule {number}: {rule.action}"
    return False, "no rule applies"


def _applies(rule: PermissionRule, use: ToolUse, root: str) -> bool:
    if rule.kind is not None and rule.kind != use.kind:
        return False
    if rule.tool is not None and not any(fnmatch.fnmatchcase(name, rule.tool) for name in use.names):
        return False
    if rule.path is None:
        return True
    matches = [_is_under(rule.path, one, root) for one in use.paths]
    return bool(matches) and (all(matches) if rule.action == "allow" else any(matches))


def _is_under(pattern: str, path: str, root: str) -> bool:
    """Whether a file's true place matches a glob: a symbolic link counts as what it leads to."""
    true_root = os.path.realpath(root)
    true_path = os.path.realpath(path if os.path.isabs(path) else os.path.join(root, path))  # noqa: PTH117, PTH118  # text in, text out
    inside = true_path == true_root or true_path.startswith(true_root + os.sep)
    seen = os.path.relpath(true_path, true_root) if inside else true_path
    if pattern.startswith("**/") and fnmatch.fnmatchcase(seen, pattern[3:]):
        return True
    return fnmatch.fnmatchcase(seen, pattern) and (inside or pattern.startswith(("/", "*")))
