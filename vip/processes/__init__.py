"""Work in child processes, which may crash, hang or be ended.

`supervisor` keeps the child processes of `vip batch`. `isolated` reads one file in a process that can be abandoned, because FFmpeg may
crash or loop forever on a damaged file; `child` is the other side of it. Messages are sent over pipes; results are on disk.
"""
