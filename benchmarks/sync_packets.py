"""Decode the sync packets of a video with PyAV and throw the frames away, in one thread.

The least work for codecs whose decoder in FFmpeg ignores `-skip_frame nokey` (VP9, AV1). Timed as a whole process, the
start of Python included.

    python benchmarks/sync_packets.py VIDEO
"""

import sys

import av

with av.open(sys.argv[1]) as container:
    stream = container.streams.video[0]
    stream.thread_type, stream.thread_count = "NONE", 1
    for packet in container.demux(stream):
        if packet.is_keyframe or packet.size == 0:  # the empty one at the end flushes the decoder
            stream.codec_context.decode(packet)
