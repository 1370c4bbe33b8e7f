async def suite():
    return {"target": "echo", "tests": ["cases.yaml", {"id": "b", "input": "b", "assert": [{"contains": "b"}]}]}
