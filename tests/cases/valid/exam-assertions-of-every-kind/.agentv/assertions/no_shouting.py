from agentv import define_assertion


@define_assertion
def no_shouting(ctx):
    return ctx.output != ctx.output.upper() and ctx.vars["tone"] == "calm"
