"""The gateway: a loopback proxy between agents and their model APIs (AGENTS.md section 5)."""
