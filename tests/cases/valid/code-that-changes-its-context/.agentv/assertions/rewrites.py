def assertion(ctx, *, value: list[str]):
    value.append("right")
    ctx.vars["topic"] = "other"
    ctx.payload["output"] = "right"
    ctx["vars"]["topic"] = "other"
    vars(ctx)["output"] = "right"
    return len(value) == 2
