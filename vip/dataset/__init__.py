"""Data sets on disk: rows, parts, shards and their sidecars, under any address (read `rows` first, then `shards`)."""
