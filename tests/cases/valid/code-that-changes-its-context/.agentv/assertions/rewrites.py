def assertion(ctx, *, words: list[str]):
    words.append("right")
    ctx.vars["topic"] = "other"
    ctx.payload["output"] = "right"
    ctx["vars"]["topic"] = "other"
    vars(ctx)["output"] = "right"
    return len(words) == 2
