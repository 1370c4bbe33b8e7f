"""Plugins of installed packages: which names they may have, what they must be, how they are called and listed."""
