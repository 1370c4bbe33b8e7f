import json


def answer(prompt):
    return json.dumps(prompt)


def _own(): ...


if json:

    def only_with_json(output):
        return True


async def later(prompt):
    return prompt
