"""What `agentv eval` shows and follows while it runs."""
