"""`--to vtt`: captions as subtitles, for any player.

In: samples. Out: OUT/VIDEO.vtt, which shows each caption until the next keyframe; beside it OUT/VIDEO~text.vtt with the text that was read
in the keyframes, and OUT/VIDEO~words.vtt with the subtitles of the video, where there are any.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.dataset.subtitles import choose_subtitles, parse_cues
from vip.errors import InputError
from vip.export.cues import CaptionCues, SubtitleCue, caption_cues
from vip.untrusted import one_line
from vip.wording import agreeing, counted, option
from vip.words.picture_text import plain_lines

STALE_FILES = ""
LAST_S = 5.0  # of the last caption, where the length of the video is not known
MOST_S = 1000 * 3600.0  # a host may state any length


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the subtitles of each video that is described.

    Raises:
        InputError: no keyframe is described.
    """
    files = with_captions = left_out = 0
    captions: Counter[str] = Counter()
    for sample in samples:
        if found := captions_of(sample):
            storage.write_whole(webvtt(found).encode(), out, f"{sample.video.key}.vtt")
            files += 1
            with_captions += 1
            captions.update("whole" if one.is_whole else "short" for one in found)
        else:
            left_out += 1
        files += _write_words(sample, out)
    if not files:
        raise InputError("There is nothing to show as subtitles: no keyframe of a video is described. Run `vip caption` first.")
    if left_out:
        videos = f"{left_out:,} of {counted(with_captions + left_out, 'video')} {'has' if left_out == 1 else 'have'}"
        note(f"{videos} no described keyframes, and so no subtitles. `vip caption` describes them.")
    if short := captions["short"]:
        ends = f"{agreeing(short, 'ends', 'end')} early with … for lack of time before the next keyframe"
        note(f"Of {counted(captions.total(), 'caption')}, {ends}. Export with {option('to', 'jsonl')} to have all of the text.")
    return files


def captions_of(sample: VideoSample) -> list[CaptionCues]:
    """Return the cues of each caption; none where nothing is described, or the pictures come from no video."""
    return _cues_of(sample, lambda frame: frame.description.dense_caption if frame.description else "")


def texts_of(sample: VideoSample) -> list[CaptionCues]:
    """Return the cues of the text in each keyframe; none where there is no text, or the pictures come from no video."""
    return _cues_of(sample, lambda frame: " · ".join(plain_lines(frame.text)) if frame.text else "")


def _write_words(sample: VideoSample, out: str) -> int:
    """Write the text in the keyframes and the subtitles of a video, where there are any; return the number of files."""
    key, files = sample.video.key, 0
    if texts := texts_of(sample):
        storage.write_whole(webvtt(texts).encode(), out, f"{key}~text.vtt")
        files += 1
    if words := choose_subtitles(sample.video.subtitles, sample.video.info.get("language")):
        storage.write_whole(webvtt(_subtitles_of(words)).encode(), out, f"{key}~words.vtt")
        files += 1
    return files


def _subtitles_of(vtt: str) -> Iterator[CaptionCues]:
    for start_s, end_s, lines in parse_cues(vtt):
        if lines and start_s < end_s:
            yield CaptionCues((SubtitleCue(_milliseconds(start_s), _milliseconds(end_s), tuple(map(one_line, lines))),), is_whole=True)


def _cues_of(sample: VideoSample, text_of: Callable[[KeyframeRow], str]) -> list[CaptionCues]:
    """Return the cues of a text for each keyframe, until the next one."""
    frames = sorted(
        ((frame.keyframe.time_s, frame) for frame in sample.frames if frame.keyframe.time_s is not None), key=lambda one: one[0]
    )
    if not frames:
        return []
    starts = [_milliseconds(time) for time, _ in frames]
    end = _milliseconds(sample.video.duration_s or 0)
    if end <= starts[-1]:
        end = starts[-1] + _milliseconds(LAST_S)
    spans = pairwise([*starts, end])
    captions = ((text_of(one), span) for span, (_, one) in zip(spans, frames, strict=True))
    return [caption_cues(text, *span) for text, span in captions if one_line(text)]


def webvtt(captions: Iterable[CaptionCues]) -> str:
    """Return the text of a WebVTT file."""
    cues = (cue for caption in captions for cue in caption.cues)
    return "\n".join(("WEBVTT\n", *map(_cue, cues)))


def _cue(cue: SubtitleCue) -> str:
    text = html.escape("\n".join(cue.lines), quote=False)  # < and --> have a meaning in WebVTT
    return f"{_clock(cue.start_ms)} --> {_clock(cue.end_ms)}\n{text}\n"


def _milliseconds(time_s: float) -> int:
    return round(1000 * min(MOST_S, max(0.0, time_s)))


def _clock(milliseconds: int) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{milliseconds:03d}"
