"""Files in, suites out."""
