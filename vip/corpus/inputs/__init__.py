"""Lists of videos: read their rows, and sample them (read `reading` first)."""
