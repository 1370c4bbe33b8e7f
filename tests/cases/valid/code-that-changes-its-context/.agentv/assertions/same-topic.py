def assertion(ctx):
    words = [entry.assertion.parameters["words"] for entry in ctx.services.trial.case.assertions[:1]]
    return ctx.vars["topic"] == "refunds" and ctx.output == "wrong" == ctx.payload["output"] and words == [["one"]]
