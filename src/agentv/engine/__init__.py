"""Execution of trials: the plan, one trial from question to verdict, and many at once."""
