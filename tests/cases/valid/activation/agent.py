from pathlib import Path


def answer(prompt, workspace_path):
    name = {"I": "refund", "P": "returns", "H": "returns"}.get(prompt[0])
    if name is None:
        return {"output": [{"role": "assistant", "content": "No skill is needed."}]}
    path = f".claude/skills/{name}/SKILL.md"
    assert (Path(workspace_path) / path).read_text() == (Path(workspace_path) / ".agents/skills" / name / "SKILL.md").read_text()
    call = {"id": "1", "name": "read_file", "arguments": {"path": path}, "output": "the skill"}
    return {"output": [{"role": "assistant", "content": "done", "tool_calls": [call]}]}
