"""`acp`: any agent that speaks the Agent Client Protocol on stdio, by the official SDK."""
