def get_assert(output, context):
    return {"pass": context["vars"]["x"] == 1, "score": 1.0, "reason": output}
