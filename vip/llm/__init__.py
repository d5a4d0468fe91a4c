"""Requests to models: clients, limits, the answer cache, costs, batches."""
