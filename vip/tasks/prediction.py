"""Video Prediction: keyframes are given, those that follow are described (section 4.2 of the paper)."""

from __future__ import annotations

from vip.tasks.keyframe_task import DescribeKeyframesTask
from vip.tasks.task import TaskInfo


class VideoPrediction(DescribeKeyframesTask):
    """Prediction-n: n keyframes are given, the next asked for; the paper asks for three, n = 1, 2 and 3."""

    name = "prediction"
    paper = "Himakunthala et al. 2023, section 4.2"
    has_after = False
    info = TaskInfo(
        summary="Describe the keyframes that follow those that are given.",
        data="Any run folder or data set of vip with descriptions.",
        groupings=("domain", "causal"),
        suite="vip",
        settings=("labels",),
    )
