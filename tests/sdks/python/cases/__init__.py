"""The cases, one module per topic; each takes a `Bus` and returns when it holds."""
