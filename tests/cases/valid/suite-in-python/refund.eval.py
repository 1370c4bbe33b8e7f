from agentv.sdk import Case, Suite

suite = Suite(
    name="refunds",
    target="echo",
    threshold=0.9,
    tests=[
        Case(id="refund", input="A refund", assertions=[{"contains": "refund"}]),
        {
            "id": "note",
            "input": {"role": "user", "content": [{"type": "file", "value": "./note.md"}]},
            "assert": [{"contains": "A note"}],
        },
    ],
)
