"""What runs: the plan of trials, one trial from question to verdict, and many of them at once."""
