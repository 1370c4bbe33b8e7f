"""What an agent changed in its workspace."""
