"""Code that is not ours, guarded: users' functions, their files, and other programs."""
