"""From a list to items: what a row is, and which videos are taken (`reading` is read first)."""
