"""The gateway: a proxy on loopback between agents and the APIs of their models (AGENTS.md section 5)."""
