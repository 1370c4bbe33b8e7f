import asyncio
from decimal import Decimal

import numpy as np


def half(output, context):
    assert (context.cost_usd, context.response_metadata) == (0.5, {"n": 3})
    return {"score": np.float32(0.75), "pass": np.bool_(True)}


def decimal(output, context):
    assert context.cost_usd == 0.25
    return Decimal("0.75")


async def awaits(output):
    await asyncio.sleep(0)
    return output == "awaited"


def strange(output):
    return object()
