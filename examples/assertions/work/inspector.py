"""Stands for Claude Code as a judge: it looks at VERSION and prints its stream of events. It calls no model."""

import json
from pathlib import Path

version = Path("VERSION").read_text().strip()
verdict = {"score": float(version == "2.0"), "reason": f"VERSION holds {version}"}
text = {"type": "text", "text": json.dumps(verdict)}
for event in (
    {"type": "system", "subtype": "init", "session_id": "1", "model": "none", "tools": ["Read"]},
    {"type": "assistant", "message": {"id": "1", "role": "assistant", "content": [text]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": text["text"], "session_id": "1"},
):
    print(json.dumps(event))
