"""Write the files that `vip doctor` decodes: two frames in each codec that videos usually have, a red and a blue half that change places.

python examples/make_doctor_samples.py          writes vip/cli/doctor_samples/
"""

from __future__ import annotations

import os
from pathlib import Path

import av
import numpy as np

FOLDER = Path(__file__).parents[1] / "vip" / "cli" / "doctor_samples"
RED, BLUE = (200, 40, 40), (40, 40, 200)
WAYS: dict[str, tuple[str, str, dict[str, str]]] = {
    "h264.mp4": ("libx264", "yuv420p", {"preset": "veryfast", "crf": "40"}),
    "hevc.mp4": ("libx265", "yuv420p", {"preset": "ultrafast", "crf": "45", "x265-params": "log-level=none:info=0"}),
    "vp8.webm": ("libvpx", "yuv420p", {"crf": "50", "b": "10k"}),
    "vp9.webm": ("libvpx-vp9", "yuv420p", {"crf": "60", "b": "0"}),
    "av1.webm": ("libsvtav1", "yuv420p", {"preset": "8", "crf": "50"}),
    "mpeg4.avi": ("mpeg4", "yuv420p", {}),
    "mpeg2.mpg": ("mpeg2video", "yuv420p", {}),
    "mjpeg.avi": ("mjpeg", "yuvj420p", {}),
    "gif.gif": ("gif", "rgb8", {}),
    "prores.mov": ("prores_ks", "yuv422p10le", {"profile": "0", "qscale": "30"}),
}
"""File -> encoder, pixel format, its options."""


def write(path: Path, codec: str, pixel_format: str, options: dict[str, str]) -> None:
    """Two frames of 64x48."""
    picture = np.full((48, 64, 3), BLUE, np.uint8)
    picture[:, :32] = RED
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=5, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pixel_format
        for number, shown in enumerate((picture, picture[:, ::-1].copy())):
            frame = av.VideoFrame.from_ndarray(shown, format="rgb24").reformat(format=pixel_format)
            frame.pts = number
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, way in WAYS.items():
        write(FOLDER / name, *way)
        if hasattr(os, "sched_setscheduler"):  # libsvtav1 as root leaves its thread at real-time priority
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


if __name__ == "__main__":
    main()
