"""The data card: what a data set holds and how it was made, in Markdown and as a page (`write` is read first)."""
