def strict(output, rubrics):
    assert rubrics == "greets"
    return f"Does it greet?\n{output}"


async def lenient(ctx):
    return [{"role": "user", "content": f"Does it greet?\n{ctx.output}"}]
