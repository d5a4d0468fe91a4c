"""Other programs that choose keyframes, each installed into a virtual environment of its own, and how they are called.

The versions are pinned, so that figures of different days compare the same programs.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 1200.0  # the slowest took 250 s for five minutes of 720p

KATNA = """
import sys
from Katna.video import Video
from Katna.writer import KeyFrameDiskWriter

if __name__ == "__main__":  # it starts processes that import this file again
    video, keyframes, folder = sys.argv[1:]
    Video().extract_video_keyframes(no_of_frames=int(keyframes), file_path=video, writer=KeyFrameDiskWriter(location=folder))
"""


class NotInstalledError(Exception):
    """pip could not install a program; the message says why."""


@dataclass(frozen=True)
class Peer:
    """A program to compare with."""

    name: str
    version: str
    """As pip is asked for it."""
    options: tuple[str, ...]
    """Further arguments of `pip install`."""
    command: Callable[[Path, Path, int, Path], list[str | Path]]
    """(folder of its programs, video, keyframes, folder to write pictures into) -> command line."""
    home: str
    """Name of its virtual environment. Two ways to call one program share it."""


def _katna(programs: Path, video: Path, keyframes: int, out: Path) -> list[str | Path]:
    script = programs / "extract_with_katna.py"
    script.write_text(KATNA)
    return [programs / "python", script, video, str(keyframes), out]


def _scenedetect(programs: Path, video: Path, _: int, out: Path) -> list[str | Path]:
    return [programs / "scenedetect", "-q", "-i", video, "-o", out, "detect-content", "save-images", "-n", "1"]


def _video_sampler(programs: Path, video: Path, _: int, out: Path) -> list[str | Path]:
    return [programs / "video_sampler", "hash", video, out, "--hash-size", "4"]


def _claude_real_video(programs: Path, video: Path, _: int, out: Path) -> list[str | Path]:
    """Return the command that its README and its skill for agents give. The silent mixes leave it nothing to transcribe.

    It remembers videos in the user's home and then skips them, hence CRV_NO_MEMORY.
    """
    return ["env", "CRV_NO_MEMORY=1", programs / "crv", video, "-o", out]


def _claude_real_video_capped(programs: Path, video: Path, keyframes: int, out: Path) -> list[str | Path]:
    return [*_claude_real_video(programs, video, keyframes, out), "--max-frames", str(keyframes)]


CLAUDE_REAL_VIDEO = "claude-real-video==0.10.7"

PEERS = {
    "katna": Peer("Katna", "katna==0.9.2", (), _katna, home="katna"),
    # asks for opencv-python, which does not start on machines without a screen; hence without what it asks for
    "scenedetect": Peer(
        "PySceneDetect",
        "scenedetect==0.7",
        ("--no-deps", "opencv-python-headless<5", "numpy", "click>=8,<8.3", "platformdirs", "tqdm"),
        _scenedetect,
        home="scenedetect",
    ),
    "video-sampler": Peer("video-sampler", "video-sampler==0.13", (), _video_sampler, home="video-sampler"),
    "claude-real-video": Peer("claude-real-video", CLAUDE_REAL_VIDEO, (), _claude_real_video, home="claude-real-video"),
    "claude-real-video-n": Peer("claude-real-video, N", CLAUDE_REAL_VIDEO, (), _claude_real_video_capped, home="claude-real-video"),
}
"""Name on the command line -> program."""


def install(name: str, work: Path) -> Path:
    """The folder of a peer's programs; the first time it is installed there.

    Raises:
        NotInstalledError: pip failed.
    """
    peer = PEERS[name]
    home = work / f"venv-{peer.home}"
    programs, ready = home / "bin", home / "ready"
    wanted = [peer.version, *peer.options]
    if not ready.exists() or ready.read_text().split() != wanted:
        for command in (
            [sys.executable, "-m", "venv", "--clear", home],
            [programs / "python", "-m", "pip", "install", "-q", *wanted],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                said = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise NotInstalledError(f"{peer.name} cannot be installed: {said}")
        ready.write_text(" ".join(wanted))
    return programs
