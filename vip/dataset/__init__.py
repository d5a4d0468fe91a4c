"""What is written: parts, shards and their sidecars, on any address (`clip` is read first, then `shards`)."""
