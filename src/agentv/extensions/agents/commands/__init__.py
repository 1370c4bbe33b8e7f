"""Commands about the work of agents: prepare it, grade it, check the exam."""
