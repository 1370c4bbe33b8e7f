"""Gateway between agents and the APIs of their models: a loopback proxy with a token for each trial."""
