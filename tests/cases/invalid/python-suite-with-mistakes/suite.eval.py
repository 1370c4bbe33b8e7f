"""Refunds."""

suite = {
    "target": "echo",
    "threshold": 3,
    "tests": [
        {"id": "a", "input": "x", "assert": [{"contians": 1}]},
        {"id": "b", "input": "x"},
    ],
}
