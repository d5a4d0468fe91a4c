"""Selection of frames (section 3.1): candidates, quality, detect, embed, prune."""
