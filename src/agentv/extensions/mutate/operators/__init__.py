"""Ways to make an answer worse, and which of them a check must notice. Pure: nothing here grades or calls."""
