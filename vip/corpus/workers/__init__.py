"""The processes of a batch: workers that fetch and extract, here and in a Ray cluster, the caption server, and the shard writer.

Read `worker` first, then `pool`.
"""
