def assertion(ctx, value=None, **options):
    return True
