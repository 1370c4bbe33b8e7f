"""A coding agent that works in the workspace of the trial, and reports what it did."""

import json
from pathlib import Path


def answer(prompt: str, workspace_path: str) -> dict[str, object]:
    workspace = Path(workspace_path)
    if "version" in prompt:
        (workspace / "VERSION").write_text("2.0\n")
        (workspace / "package.json").write_text(json.dumps({"name": "lamps", "version": "2.0"}))
        (workspace / "CHANGELOG.md").write_text("# Version 2.0\n")
        return report(1)
    (workspace / "tests" / "test_version.py").unlink()
    return report(3)


def report(turns: int) -> dict[str, object]:
    output = "exit status 0" if turns == 1 else "error: no such file"
    work = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"name": "shell", "arguments": {"command": "make"}, "output": output}],
        }
        for _ in range(turns)
    ]
    return {"output": [*work, {"role": "assistant", "content": "Done."}]}
