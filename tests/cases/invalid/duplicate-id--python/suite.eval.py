suite = {
    "target": "echo",
    "tests": [{"id": "twin", "input": text, "assert": [{"contains": text}]} for text in ("one", "two")],
}
