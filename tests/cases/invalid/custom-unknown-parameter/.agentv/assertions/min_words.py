from agentv import define_assertion


@define_assertion
def min_words(ctx, *, minimum: int = 3):
    return len((ctx.output or "").split()) >= minimum
