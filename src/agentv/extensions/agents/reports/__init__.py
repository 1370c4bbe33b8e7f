"""What people read of agents: those that are working, traces, sessions, and checks of cases."""
