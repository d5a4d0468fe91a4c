"""Data sets from lists of videos: read, sample, fetch, extract, describe, and write shards; on one machine or a cluster.

Read `batch` first.
"""
