"""What every page is made of: layout, parts, escaping, words, axes and charts."""
