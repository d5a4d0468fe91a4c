"""An installed package whose backends misbehave on the videos named after it: `crash.mp4`, `hang.mp4`, `eat.mp4`.

They also stop at the stage that the variable STAGE names, and leave a file `there` when they have come to it.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli.terminal import ROOT

MODULE = '''
import ctypes, os, pathlib, signal
from vip.extraction.samplers.sync import SyncSampler
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector

def hold(stage):
    """As a loop in C that lets no other thread run."""
    if os.environ.get("STAGE") == stage and not pathlib.Path("there").exists():
        pathlib.Path("there").touch()
        ctypes.PyDLL(None).sleep(300)

class Sampler(SyncSampler):
    name = "stuck"
    def sample(self, video, **wanted):
        if pathlib.Path(video.name).stem == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if pathlib.Path(video.name).stem == "eat":
            raise MemoryError
        if pathlib.Path(video.name).stem == "hang":
            ctypes.PyDLL(None).sleep(300)
        hold("sampler")
        return super().sample(video, **wanted)

class Embedder(ClassicEmbedder):
    name = "stuck"
    def embed_images(self, images):
        hold("embedder")
        return super().embed_images(images)
    def embed_texts(self, texts):
        hold("choosing")
        return super().embed_texts(texts)

class Detector(OpenCVDetector):
    def detect(self, images, where=()):
        hold("detector")
        return super().detect(images)
'''
POINTS = (
    "[vip.samplers]\nstuck = vip_stuck:Sampler\n[vip.embedders]\nstuck = vip_stuck:Embedder\n[vip.detectors]\nstuck = vip_stuck:Detector\n"
)
OPTIONS = ("--sampler", "stuck", "--embedder", "stuck", "--detector", "stuck")


def install(folder: Path) -> dict[str, str]:
    """Write the package; the environment in which it is found."""
    info = folder / "vip_stuck-1.dist-info"
    info.mkdir(parents=True)
    (folder / "vip_stuck.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vip-stuck\nVersion: 1\n")
    (info / "entry_points.txt").write_text(POINTS)
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
