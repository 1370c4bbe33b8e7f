def assertion(ctx, *, minimum: int):
    return len((ctx.output or "").split()) >= minimum
