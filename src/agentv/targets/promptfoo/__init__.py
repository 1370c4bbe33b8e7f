"""promptfoo's provider interface: what a provider is called with, and what it answers."""
