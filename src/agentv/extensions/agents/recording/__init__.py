"""Recorded trials of agents: the model's side of each, kept in a cassette and replayed from it."""
