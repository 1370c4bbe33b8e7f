"""The `http` target, and the parts that all targets with HTTP calls share."""
