import os

suite = {}
os._exit(3)
