"""Serve the abilities of vip to agents over the Model Context Protocol."""
