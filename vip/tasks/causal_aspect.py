"""The causal aspect of scenes, physical or social, asked of an engine (section 5.1 and Table 5 of the paper).

It labels the samples of infilling: predict it first, and give the predictions to `vip samples --task infilling --labels FILE`. Such labels
name the engine, since they are no one's judgement but its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from vip.tasks.infilling import VideoInfilling
from vip.tasks.keyframe_task import in_words, task_prompt
from vip.tasks.labels import ASPECTS
from vip.tasks.plain import PlainTask
from vip.tasks.records import Choice, DescriptionText, KeyframeDescription, Prediction, Sample
from vip.tasks.task import SampleSource, TaskInfo, TaskRequest


class CausalAspect(PlainTask):
    """What causes the changes of a scene: forces of the world, or what people mean."""

    name = "causal-aspect"
    paper = "Himakunthala et al. 2023, section 5.1"
    info = TaskInfo(
        summary="Say whether forces or people cause what changes in a scene: labels for the samples of infilling.",
        data="Any run folder or data set of vip with descriptions.",
        suite="vip",
        settings=("labels",),
    )

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        """Yield a sample for each of infilling, with the same id; all its keyframes are shown, and there is no reference."""
        for window in VideoInfilling().samples(source):
            assert window.reference is not None
            before = len(window.context) // 2
            hidden = [
                KeyframeDescription(keyframe_id=f"target {place + 1}", time_s=None, famous=one.famous, dense_caption=one.dense_caption)
                for place, one in enumerate(window.reference.values[0])  # type: ignore[arg-type]
                if isinstance(one, DescriptionText)
            ]
            yield window.model_copy(
                update={
                    "task": self.name,
                    "task_version": self.version,
                    "context": (*window.context[:before], *hidden, *window.context[before:]),
                    "ask": Choice(question="What causes most of what changes?", options=ASPECTS),
                    "reference": None,
                }
            )

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        prompt = task_prompt("causal-aspect")
        pieces = [piece for piece in sample.context if isinstance(piece, KeyframeDescription)]
        scenes = "\n\n".join(in_words(piece, place + 1) for place, piece in enumerate(pieces))
        return TaskRequest(prompt=prompt, text=prompt.render({"scenes": scenes}), max_tokens=16)

    def parse(self, sample: Sample, answer: str) -> Prediction:
        word = answer.strip().rstrip(".").lower()
        if word not in ASPECTS:
            return Prediction(sample_id=sample.id, value=None, status="unparsed", reason="neither physical nor social", raw=answer)
        return Prediction(sample_id=sample.id, value=ASPECTS.index(word), raw=answer)
