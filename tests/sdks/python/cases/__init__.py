"""The cases, one module per topic; each takes a `Bus` and returns if it passes."""
