def helper(ctx):
    return True
