import asyncio

from agentv.sdk import Case


def listed():
    print("users' code may print")
    return [{"id": "listed", "input": "x", "assert": [{"contains": "x"}]}]


def generated():
    for number in range(2):
        yield Case(
            id=f"made-{number}",
            input="Number {{ n }}",
            vars={"n": number},
            assertions=[{"contains": f"Number {number}"}],
        )


async def awaited():
    await asyncio.sleep(0)
    return ({"id": "awaited", "input": "x", "assert": ({"contains": "x"},)},)


async def streamed():
    await asyncio.sleep(0)
    yield {
        "id": "streamed",
        "input": {"role": "user", "content": [{"type": "file", "value": "./note.md"}]},
        "assert": [{"contains": "A note"}],
    }
