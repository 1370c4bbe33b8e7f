"""Commands for the work of agents (`prepare`, `grade`, `check`, `trace`, `import`), and options of `agentv eval`."""

from __future__ import annotations

from functools import partial

from agentv.cli.lazy import Option
from agentv.cli.values import Choice

_option = partial(Option, section="Agents")

VARIANT = _option(["--variant", "variants"], multiple=True, metavar="NAME", help="Run only this variant. Repeatable.")
SANDBOX = _option(
    ["--sandbox"], type=Choice(("none", "bwrap", "docker")), help="What confines agents to their workspaces."
)
KEEP_WORKSPACES = _option(
    ["--keep-workspaces"], type=Choice(("none", "failed", "all")), help="Workspaces to keep (default: failed)."
)
WORKSPACE_PATH = _option(
    ["--workspace-path"], metavar="DIR", help="Run agents in this existing directory itself, one at a time."
)
