"""Video Infilling: keyframes before and after are given, those between are described (section 4.1 of the paper)."""

from __future__ import annotations

from vip.tasks.keyframe_task import DescribeKeyframesTask
from vip.tasks.task import TaskInfo


class VideoInfilling(DescribeKeyframesTask):
    """Infilling-n: keyframes i-n … i-1 and j+1 … j+n are given, i … j asked for; the paper asks for three, n = 1 and 2."""

    name = "infilling"
    paper = "Himakunthala et al. 2023, section 4.1"
    has_after = True
    info = TaskInfo(
        summary="Describe the keyframes between those that are given.",
        data="Any run folder or data set of vip with descriptions.",
        groupings=("domain", "causal"),
        suite="vip",
        settings=("labels",),
    )
