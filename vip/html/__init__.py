"""What every page is made of: layout, escaping, words, axes."""
