"""How the page's content was made: settings, versions, time per stage, the calls to engines, the file that was read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vip.html.format import plural
from vip.html.markup import Html, join, tag
from vip.records import Call, Description, Manifest, VideoInfo


def provenance(manifest: Manifest | None, descriptions: Sequence[Description]) -> Html:
    """A folded section; nothing where nothing is known."""
    parts = [*(_of_manifest(manifest) if manifest else []), *_of_calls([call for row in descriptions for call in row.calls])]
    if not parts:
        return Html("")
    return tag("details", tag("summary", tag("h2", "How this was made")), tag("div", join(parts), class_="tables"), class_="made")


def _of_manifest(manifest: Manifest) -> list[Html]:
    seconds = {stage: _seconds(value) for stage, value in manifest.seconds.items()}
    if len(seconds) > 1:
        seconds["together"] = _seconds(sum(manifest.seconds.values()))
    return [
        _table("Seconds per stage", seconds),
        _table("Settings", {"command": manifest.command, **manifest.settings}),
        _table("Settings of the captions", manifest.captioning or {}),
        _table("What auto became", manifest.backends),
        _table("Versions", {**manifest.versions, "device": manifest.device}),
        _table("The file", _of_video(manifest.video)),
    ]


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 0.1 else f"{value:.3f} s"


def _of_video(video: VideoInfo) -> dict[str, Any]:
    return {
        "path": video.path,
        "sha256": video.sha256,
        "container": video.container,
        "codec": video.codec,
        "pixel format": video.pixel_format,
        "rotation": f"{video.rotation_deg}°",
        "pixel aspect ratio": str(video.pixel_aspect_ratio),
        "frame rate": "unknown" if video.frame_rate is None else f"{float(video.frame_rate):.6g} ({video.frame_rate})",
        "frames": video.frames,
        "sync frames": video.sync_frames,
    }


def _of_calls(calls: Sequence[Call]) -> list[Html]:
    if not calls:
        return []
    facts: dict[str, Any] = {
        "calls": len(calls),
        "models": _distinct(call.model for call in calls),
        "prompts": _distinct(f"{call.prompt} {call.prompt_version} ({call.prompt_sha256[:12]})" for call in calls),
        "tokens in": _sum([call.tokens_in for call in calls], ",.0f"),
        "tokens out": _sum([call.tokens_out for call in calls], ",.0f"),
        "US dollars": _sum([call.usd for call in calls], ",.4f"),
        "seconds, mean of a call": f"{sum(call.latency_s for call in calls) / len(calls):.2f}",
    }
    return [_table("Calls to engines", facts)]


def _distinct(values: Any) -> str:
    return ", ".join(dict.fromkeys(values))


def _sum(values: Sequence[float | None], form: str) -> str:
    """Unknown is not zero: says how many calls did not report."""
    known = [value for value in values if value is not None]
    if not known:
        return "not reported"
    silent = len(values) - len(known)
    return f"{sum(known):{form}}" + (f" ({plural(silent, 'call')} did not report)" if silent else "")


def _table(title: str, rows: Mapping[str, Any]) -> Html:
    if not rows:
        return Html("")
    lines = [tag("div", tag("dt", tag("bdi", key)), tag("dd", tag("bdi", _shown(value)))) for key, value in rows.items()]
    return tag("section", tag("h3", title), tag("dl", join(lines)))


def _shown(value: object) -> str:
    if isinstance(value, str):
        return value
    return "—" if value is None else json.dumps(value, ensure_ascii=False, default=str)
