def assertion(ctx):
    return {"pass": False, "score": 0.9}
