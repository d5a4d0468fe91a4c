"""Those who do the work, each a process of its own: crews here and in a Ray cluster, captions, shards.

Read `hand` first, then `crew`.
"""
