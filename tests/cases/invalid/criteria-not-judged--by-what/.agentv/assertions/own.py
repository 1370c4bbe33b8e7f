def assertion(ctx):
    return True
