def write(context):
    return f"{context['vars']['word']} for {context['provider']['id']} as {context['provider']['label']}"
