import os


def leaves():
    os._exit(3)


def asks(config):
    return config
