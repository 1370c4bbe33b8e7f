async def as_named(output, context):
    return len(output) / 10
