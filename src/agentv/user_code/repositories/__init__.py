"""Files from repositories on git hosts."""
