"""Commands about the work of agents (prepare it, grade it, check cases, traces, sessions), and options of `eval`."""
