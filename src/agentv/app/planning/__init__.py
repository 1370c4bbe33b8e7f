"""What comes before a run: settings applied, suites read, trials planned."""
