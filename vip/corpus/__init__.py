"""From a list of videos to a data set: read, sample, fetch, extract, describe, and write shards; on one machine or a cluster.

Read `batch` first.
"""
