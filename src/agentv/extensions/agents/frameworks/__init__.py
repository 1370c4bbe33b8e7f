"""Programs built with agent frameworks: what their functions return, and the spans that they record."""
