def assertion(ctx, **config):
    return config == {"anything": "goes"}
