def agent(prompt):
    calls = [
        {"tool": "Read", "input": {"file_path": "skills/refund/SKILL.md"}, "output": '{"days": 30, "unit": "day"}'},
        {"tool": "Edit", "input": {"file_path": "a.md", "text": "x"}, "output": "done", "duration_ms": 5},
    ]
    message = {"role": "assistant", "content": "Thirty days", "tool_calls": calls}
    return {"output": [message], "token_usage": {"input": 5, "output": 3}}
