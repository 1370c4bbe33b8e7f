def assertion(ctx, *, minimum: int = 3):
    return True
