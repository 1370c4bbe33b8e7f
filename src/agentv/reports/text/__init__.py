"""Text of models and users, made safe to show."""
