"""The version of agentv, in a module that imports nothing."""

__version__ = "1.0.0rc1"
