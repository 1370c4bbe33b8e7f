import asyncio
import threading


def hang(output):
    threading.Event().wait()


async def wait(output):
    await asyncio.Event().wait()
