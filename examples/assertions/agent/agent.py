"""An agent that reports the tools that it called, as messages."""

FIND = [
    {"name": "search", "arguments": {"query": "lamps", "limit": 5}},
    {"name": "skill", "arguments": {"skill": "catalogue"}},
    {"name": "save", "arguments": {"id": 17}},
]
DELETE = [{"name": "delete", "arguments": {"id": 17}}]


def answer(prompt: str) -> dict[str, object]:
    calls = FIND if "Find" in prompt else DELETE
    return {
        "output": [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "assistant", "content": "Done."},
        ]
    }
