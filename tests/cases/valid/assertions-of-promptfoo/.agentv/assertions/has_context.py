def get_assert(output, context, *, minimum: int = 1):
    found = output == "hello" and context["vars"]["x"] == 1 and context["prompt"] == "hello"
    found = found and context["test"]["vars"] == context.get("vars") and context["provider"]["id"] == "echo"
    parts = [{"pass": found, "score": 0.9, "reason": f"at least {minimum}"}]
    return {"pass_": found, "score": 0.9, "reason": "all there", "component_results": parts}
