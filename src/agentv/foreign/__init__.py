"""Code that is not ours: users' functions, their files, and other programs. What they do wrong becomes a value."""
