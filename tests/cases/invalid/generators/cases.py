import os
import sys


def raises():
    yield {"id": "fine", "input": "x", "assert": [{"contains": "x"}]}
    raise ValueError("the table is gone")


def leaves():
    os._exit(3)


def exits():
    sys.exit(0)


def odd():
    yield {"id": "odd", "input": {1, 2}}


def wrong():
    yield {"id": "a", "input": "x", "assert": [{"contains": "x"}, {"contians": "x"}]}
    yield 7
    yield {"id": "b", "input": "{{ nobody }}", "assert": [{"contains": "x"}]}
    yield {"id": "c", "input": "x", "assert": [{"contains": "x"}]}
    yield {"id": "c", "input": "x", "assert": [{"contains": "x"}]}


def text():
    return "a case"


def nothing():
    return []


def asks(config):
    return config


def breaks_off():
    yield {"id": "first", "input": "x", "assert": [{"contains": "x"}]}
    os._exit(3)
