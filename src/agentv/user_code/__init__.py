"""Guarded execution of code that is not agentv's: users' functions, their files, and other programs."""
