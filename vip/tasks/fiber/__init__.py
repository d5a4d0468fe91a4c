"""FIBER: fill the blank of a caption with what the video shows (Castro et al. 2022).

`vatex` reads captions, `blanks` makes blanks of them, `records` reads and writes the authors' form, `task` asks and scores.
"""
