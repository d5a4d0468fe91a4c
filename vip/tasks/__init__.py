"""Benchmarks: one file a task. Samples are made or read, an engine or a baseline predicts, metrics score what was saved.

In: run folders, data sets, published annotation files. Out: samples.jsonl, predictions.jsonl, result.json and a page.
"""
