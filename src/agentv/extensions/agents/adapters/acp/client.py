"""What an agent may ask of us: permission for its tools, which the target's policy answers.

Files and commands are the agent's own business, which it does in its sandbox: we announce neither capability.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acp import RequestError, RequestPermissionResponse
from acp.schema import AllowedOutcome, DeclineElicitationResponse, DeniedOutcome

from agentv.extensions.agents.adapters.settings import Decision, PermissionRule

if TYPE_CHECKING:
    from agentv.extensions.agents.adapters.acp.trace_builder import TraceBuilder


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


_WANTED = {True: ("allow_once", "allow_always"), False: ("reject_once", "reject_always")}
"""Kinds of options for either decision, the narrower first."""


class AcpClient:
    """The client of one session; a `Client` of the SDK.

    Args:
        policy: of the target.
        root: the workspace.

    Attributes:
        trace: of the answer that is being given; set before each prompt.
    """

    trace: TraceBuilder

    def __init__(self, policy: Decision | Sequence[PermissionRule], root: str) -> None:
        self._policy = policy
        self._root = root

    def on_connect(self, conn: Any) -> None:
        """Nothing: the session talks to the agent."""

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:  # noqa: ARG002  # the SDK's signature
        """Answer by the policy, with an option of the agent's."""
        fields: Mapping[str, Any] = tool_call.model_dump(mode="json", by_alias=True, exclude_none=True)
        call = self.trace.use(fields)
        use = ToolUse((call.names.name, call.names.native_name, call.title), call.kind, call.paths)
        allowed, reason = decide(self._policy, use, self._root)
        chosen = next((one for kind in _WANTED[allowed] for one in options if one.kind == kind), None)
        if allowed and chosen is None:
            allowed, reason = False, "the agent offers no option that allows it"
        self.trace.permission(fields, allowed=allowed, reason=reason)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Nothing: updates reach the trace as JSON."""

    async def create_elicitation(self, **_: Any) -> DeclineElicitationResponse:
        """There is nobody to ask."""
        return DeclineElicitationResponse(action="decline")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # as above
        """Extensions are not known here."""
        raise RequestError.method_not_found(method)
