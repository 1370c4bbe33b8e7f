"""What all model APIs share: requests, files, prices, limits."""
