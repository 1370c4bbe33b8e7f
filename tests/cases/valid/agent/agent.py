import json
import sys

question = sys.stdin.read()
if "plain" in question:
    print("I know it by heart.")
elif "nothing" in question:
    print(json.dumps({"output": [{"role": "assistant", "content": "I know it by heart."}]}))
else:
    calls = [
        {"tool": "search", "input": {"query": "lamps", "limit": 5}, "duration_ms": 40},
        {"tool": "Skill", "input": {"skill": "pdf"}},
        {"tool": "save", "input": {}},
    ]
    print(
        json.dumps(
            {
                "output": [
                    {"role": "assistant", "content": "", "tool_calls": calls},
                    {"role": "assistant", "content": "Done."},
                ]
            }
        )
    )
