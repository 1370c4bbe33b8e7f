def assertion(ctx, value=None):
    return value == 2
