"""Web pages and playlists as hosts of videos send them."""

from __future__ import annotations


def page(*bodies: str, title: str = "A page") -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{''.join(bodies)}</body></html>"


def video(source: str) -> str:
    return f'<video src="{source}"></video>'


def segments(*addresses: str) -> str:
    """An HLS playlist."""
    return "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:6", *(f"#EXTINF:6,\n{one}" for one in addresses), "#EXT-X-ENDLIST", ""])
