"""Answers with what the prompt says: a text, or a JSON object with `output` and the like, as a `cli` target gives it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

prompt = Path(sys.argv[1]).read_text(encoding="utf-8").strip()
answer = json.loads(prompt) if prompt.startswith('{"output"') else {"output": [{"role": "assistant", "content": prompt}]}
Path(sys.argv[2]).write_text(json.dumps(answer), encoding="utf-8")
