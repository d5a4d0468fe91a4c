"""Work on one file in a process of its own, which can be abandoned: FFmpeg may loop without end or crash on a damaged file.

`parent.apart` starts and watches the child; `child` runs in it. Only messages cross the border, results are on disk.
"""
