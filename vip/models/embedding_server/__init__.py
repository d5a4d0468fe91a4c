"""One embedder on a GPU, shared by the processes of a machine or a cluster."""
