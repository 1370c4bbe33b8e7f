"""Stands for Claude Code as a judge: it looks at VERSION and prints its stream of events. It calls no model."""

import json
from pathlib import Path

version = Path("VERSION").read_text().strip()
verdict = {"score": float(version == "2.0"), "reason": f"VERSION holds {version}"}
text = {"type": "text", "text": json.dumps(verdict)}
read = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "VERSION"}}
seen = {"type": "tool_result", "tool_use_id": "t1", "content": version}
for event in (
    {"type": "system", "subtype": "init", "session_id": "1", "model": "none", "tools": ["Read"]},
    {"type": "assistant", "message": {"id": "1", "role": "assistant", "content": [read]}},
    {"type": "user", "message": {"role": "user", "content": [seen]}},
    {"type": "assistant", "message": {"id": "2", "role": "assistant", "content": [text]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": text["text"], "session_id": "1"},
):
    print(json.dumps(event))
