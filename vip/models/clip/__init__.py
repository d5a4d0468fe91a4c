"""The embedder `clip`: models of open_clip."""
