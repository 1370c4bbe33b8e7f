"""Sign-in by OpenID Connect: the provider, its keys, and what it says of a person."""
