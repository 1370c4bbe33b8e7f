def assertion(ctx, *, minimum: int):
    return True
