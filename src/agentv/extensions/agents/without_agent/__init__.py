"""Evaluation without the agent itself: prepared work, known solutions, and an agent that does nothing."""
