def formal(context):
    print("printed")
    return [{"role": "user", "content": "Dear " + context["vars"]["name"]}]


async def short(vars):
    return {"prompt": vars["name"] + " {{ name }}"}
