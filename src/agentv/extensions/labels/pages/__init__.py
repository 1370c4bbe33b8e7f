"""Labels, and what they say of judges, in the pages of `agentv view`: endpoints, and options of the command."""
