import asyncio
import dataclasses
import datetime
import enum
import pathlib
from decimal import Decimal

import numpy as np
import pydantic


@dataclasses.dataclass
class Answer:
    output: str


class Model(pydantic.BaseModel):
    output: str
    metadata: dict[str, datetime.datetime] = {"at": datetime.datetime(2020, 1, 2)}


class Colour(enum.Enum):
    RED = "red"


class Hostile:
    def __reduce__(self):
        raise AssertionError("nothing is pickled")


def items():
    yield 1


def answer(prompt):
    held = {}
    held["output"] = held
    results = {
        "dataclass": lambda: Answer("from a dataclass"),
        "pydantic": lambda: Model(output="from pydantic"),
        "numpy": lambda: {"output": "x", "cost_usd": np.float64(0.5), "metadata": {"n": np.int64(3)}},
        "decimal": lambda: {"output": "x", "cost_usd": Decimal("0.25")},
        "enum": lambda: Colour.RED,
        "path": lambda: pathlib.PurePosixPath("a", "b.txt"),
        "datetime": lambda: {"output": "x", "metadata": {"at": datetime.date(2020, 1, 2)}},
        "loop": lambda: asyncio.get_event_loop().run_until_complete(asyncio.sleep(0, "looped")),
        "coroutine": lambda: asyncio.sleep(0, "awaited"),
        "generator": items,
        "object": Hostile,
        "inside": lambda: {"output": "x", "metadata": {"f": print}},
        "itself": lambda: held,
    }
    return results[prompt]()
