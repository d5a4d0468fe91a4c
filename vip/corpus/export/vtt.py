"""`--to vtt`: captions as subtitles, for any player. In: clips. Out: OUT/VIDEO.vtt, with each keyframe's caption until the next one."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from itertools import pairwise

from vip.corpus.output import storage
from vip.corpus.output.clip import Clip, KeyframeRow
from vip.errors import InputError
from vip.wording import counted

OLD = ""
LAST_S = 5.0  # of the last caption, where the length of the video is not known
LEAST_MS = 1
MOST_S = 1000 * 3600.0  # what a host says of a length may be nonsense


def write(clips: Iterator[Clip], out: str, note: Callable[[str], None]) -> int:
    """Raises InputError where no keyframe of a video is described."""
    files = left_out = 0
    for clip in clips:
        if text := subtitles(clip):
            storage.write_whole(storage.join(out, f"{clip.video.key}.vtt"), text.encode())
            files += 1
        else:
            left_out += 1
    if not files:
        raise InputError("There is nothing to show as subtitles: no keyframe of a video is described. Run `vip caption` first.")
    if left_out:
        have = f"{'has' if left_out == 1 else 'have'} no described keyframes, and so no subtitles"
        note(f"{left_out:,} of {counted(files + left_out, 'video')} {have}. `vip caption` describes them.")
    return files


def subtitles(clip: Clip) -> str:
    """The WebVTT file; empty where nothing is described, or the pictures come from no video."""
    frames = sorted(((frame.keyframe.time_s, frame) for frame in clip.frames if frame.keyframe.time_s is not None), key=lambda one: one[0])
    if not frames:
        return ""
    starts = [_milliseconds(time) for time, _ in frames]
    end = _milliseconds(clip.video.duration_s or 0)
    if end <= starts[-1]:
        end = starts[-1] + _milliseconds(LAST_S)
    spans = pairwise([*starts, end])
    cues = [_cue(start, stop, text) for (start, stop), (_, frame) in zip(spans, frames, strict=True) if (text := _text(frame))]
    return "\n".join(("WEBVTT\n", *cues)) if cues else ""


def _text(frame: KeyframeRow) -> str:
    """The caption as WebVTT has it, on one line."""
    return html.escape(" ".join(frame.description.dense_caption.split()), quote=False) if frame.description else ""


def _cue(start_ms: int, end_ms: int, text: str) -> str:
    return f"{_clock(start_ms)} --> {_clock(max(end_ms, start_ms + LEAST_MS))}\n{text}\n"


def _milliseconds(time_s: float) -> int:
    return round(1000 * min(max(time_s, 0.0), MOST_S))


def _clock(milliseconds: int) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"
