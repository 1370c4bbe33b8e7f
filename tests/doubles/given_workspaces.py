"""Workspaces for tests of the engine: nothing on disk, every call recorded in order."""

from dataclasses import dataclass, field
from typing import Any

from agentv.model.values.trace import FileChange, WorkspaceChanges
from doubles.agents import RecordingSandbox

CHANGED = WorkspaceChanges((FileChange("a.py", "modified"),), "diff --git a/a.py b/a.py\n")


@dataclass
class FakeWorkspace:
    """A workspace that records what is done with it."""

    notes: list[str]
    changes: Any = CHANGED
    closed: Any = None
    path: str = "/workspaces/1"
    sandbox: RecordingSandbox = field(default_factory=RecordingSandbox)

    async def finish(self):
        self.notes.append("finish")
        return self.changes

    async def restore_test_config(self, allowed):
        return ()

    async def run_failing_tests(self, command, reports):
        return None

    async def run(self, command, stdin=b""):
        raise AssertionError(f"nothing is run here: {command} {stdin!r}")

    async def close(self, *, keep):
        self.notes.append(f"close, keep {keep}")
        return self.closed


@dataclass
class FakeWorkspaces:
    """Opens the workspace given by the test, or returns its failure."""

    opened: Any
    notes: list[str] = field(default_factory=list)
    specs: list[Any] = field(default_factory=list)

    async def open(self, spec, variant, env):
        self.notes.append(f"open {variant.name if variant else 'plain'} {dict(env)}")
        self.specs.append(spec)
        return self.opened

    async def close(self):
        self.notes.append("end")
        return ()
