"""Provenance of the page's content: settings, versions, time per stage, the calls to engines, the file that was read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vip.html.format import plural
from vip.html.parts import ValueTable
from vip.records import Call, Description, Manifest, VideoInfo


def provenance(manifest: Manifest | None, descriptions: Sequence[Description]) -> list[ValueTable]:
    """Return the tables that have rows."""
    tables = {
        **(_of_manifest(manifest) if manifest else {}),
        "Calls to engines": _of_calls([call for row in descriptions for call in row.calls]),
    }
    return [ValueTable(title, [(key, _format_value(value)) for key, value in rows.items()]) for title, rows in tables.items() if rows]


def _of_manifest(manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    seconds = {stage: _seconds(value) for stage, value in manifest.seconds.items()}
    if len(seconds) > 1:
        seconds["together"] = _seconds(sum(manifest.seconds.values()))
    return {
        "Seconds per stage": seconds,
        "Settings": {"command": manifest.command, **manifest.settings},
        "Settings of the captions": manifest.captioning or {},
        "What auto became": manifest.backends,
        "Versions": {**manifest.versions, "device": manifest.device},
        "The file": _of_video(manifest.video),
    }


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


def _of_calls(calls: Sequence[Call]) -> dict[str, Any]:
    if not calls:
        return {}
    return {
        "calls": len(calls),
        "models": _join_distinct(call.model for call in calls),
        "prompts": _join_distinct(f"{call.prompt} {call.prompt_version} ({call.prompt_sha256[:12]})" for call in calls),
        "tokens in": _format_sum([call.tokens_in for call in calls], ",.0f"),
        "tokens out": _format_sum([call.tokens_out for call in calls], ",.0f"),
        "US dollars": _format_sum([call.usd for call in calls], ",.4f"),
        "seconds, mean of a call": f"{sum(call.latency_s for call in calls) / len(calls):.2f}",
    }


def _join_distinct(values: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(values))


def _format_sum(values: Sequence[float | None], form: str) -> str:
    """Return the sum, and how many calls did not report: unknown is not zero."""
    known = [value for value in values if value is not None]
    if not known:
        return "not reported"
    unreported = len(values) - len(known)
    return f"{sum(known):{form}}" + (f" ({plural(unreported, 'call')} did not report)" if unreported else "")


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    return "—" if value is None else json.dumps(value, ensure_ascii=False, default=str)
