"""`--to vtt`: captions as subtitles, for any player. In: clips. Out: OUT/VIDEO.vtt, with each keyframe's caption until the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from vip.corpus import storage
from vip.corpus.clip import Clip, KeyframeRow
from vip.errors import InputError

OLD = ""
LAST_S = 5.0  # of the last caption, where the length of the video is not known
LEAST_MS = 1


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
        note(f"{left_out:,} of {files + left_out:,} videos have no described keyframes, and so no subtitles. `vip caption` describes them.")
    return files


def subtitles(clip: Clip) -> str:
    """The WebVTT file; empty where nothing is described, or the pictures come from no video."""
    frames = sorted(((frame.keyframe.time_s, frame) for frame in clip.frames if frame.keyframe.time_s is not None), key=lambda one: one[0])
    if not frames:
        return ""
    starts = [max(0, round(time * 1000)) for time, _ in frames]
    end = max(round((clip.video.duration_s or 0) * 1000), starts[-1]) or round(LAST_S * 1000)
    if end == starts[-1]:
        end += round(LAST_S * 1000)
    spans = pairwise([*starts, end])
    cues = [_cue(start, stop, frame) for (start, stop), (_, frame) in zip(spans, frames, strict=True) if frame.description]
    return "\n".join(("WEBVTT\n", *cues)) if cues else ""


def _cue(start_ms: int, end_ms: int, frame: KeyframeRow) -> str:
    text = frame.description.dense_caption if frame.description else ""
    for letter, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # with them goes every -->
        text = text.replace(letter, name)
    return f"{_clock(start_ms)} --> {_clock(max(end_ms, start_ms + LEAST_MS))}\n{' '.join(text.split())}\n"


def _clock(milliseconds: int) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"
