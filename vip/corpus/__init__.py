"""From a list of videos to a data set: read and choose, fetch, extract, describe, and write shards; on one machine or a cluster.

`items` has the words that all of it shares; `batch` is read first.
"""
