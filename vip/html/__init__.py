"""Building blocks of every page: layout, parts, escaping, words, axes and charts."""
