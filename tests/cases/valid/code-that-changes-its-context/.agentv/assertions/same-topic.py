def assertion(ctx):
    return ctx.vars["topic"] == "refunds" and ctx.output == "wrong" == ctx.payload["output"]
