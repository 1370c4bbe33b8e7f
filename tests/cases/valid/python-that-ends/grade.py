import os


def exits(output):
    os._exit(0)
