"""The narrow waist: frozen, slotted dataclasses. Everything else turns something into them, or them into something."""
