"""What is compared within a run, and what comparisons say."""
