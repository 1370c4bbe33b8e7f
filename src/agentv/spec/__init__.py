"""What people write, turned into a Suite, or into all that is wrong with it."""
