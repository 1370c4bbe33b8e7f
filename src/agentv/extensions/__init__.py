"""What agentv can do beyond its core: each folder registers what it adds in its `__init__.py`, and can be deleted."""
