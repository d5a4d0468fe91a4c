"""VALUE: eleven tasks of three kinds on video and subtitles (Li et al. 2021).

`datasets` is the registry, `annotations` reads published files, `submissions` reads, checks and writes predictions, `metrics` scores,
`task` is what the eleven share, `suite` the averages over them.
"""
