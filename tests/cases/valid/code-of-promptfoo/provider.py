def call_api(prompt, options, context):
    return {"output": {"greeting": f"{options['config']['word']} {prompt}", "to": context["vars"]["name"]}}
