"""What an editor asks about authored files while they are written: mistakes, completions, places of names."""
