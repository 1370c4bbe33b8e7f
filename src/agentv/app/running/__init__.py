"""A run: started, recorded, summarized."""
