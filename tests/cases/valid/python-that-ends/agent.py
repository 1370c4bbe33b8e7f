import ctypes
import os
import signal
import time


def answer(prompt):
    if prompt == "exit":
        os._exit(0)
    if prompt == "crash":
        ctypes.string_at(0)
    if prompt == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if prompt == "memory":
        raise MemoryError
    if prompt == "close":
        os.closerange(0, 256)
    if prompt == "fork" and os.fork() == 0:
        return "from the child"
    if prompt == "chdir":
        os.chdir("/")
    if prompt == "print":
        print("x" * 100_000)
    if prompt == "hang":
        time.sleep(1000)
    return prompt
