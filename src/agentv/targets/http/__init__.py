"""HTTP clients and servers as targets, and what all HTTP calls share."""
