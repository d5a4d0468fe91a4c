"""The settings of samples and predictions: each is an option of the command line, a key of vip.toml and a keyword of Python."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from vip.tasks.records import Representation


class SampleSettings(BaseModel):
    """How samples are made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    context: int = Field(1, ge=1, le=64, description="Keyframes given: on either side (infilling), or before (prediction).")
    targets: int = Field(3, ge=1, le=64, description="Keyframes asked for.")
    representation: Representation = Field(
        "famous", description="What stands for a keyframe: famous (FAMOuS) or dense (the dense caption)."
    )
    pictures: bool = Field(False, description="Show the pictures of the context as well: the pairs (k, s) and (k, u) of the paper.")
    split: str | None = Field(None, description="Split of a published benchmark, by its published name.")
    seed: int = Field(0, description="Chooses the samples of --most, demonstrations and random baselines.")
    most: int | None = Field(None, ge=1, description="Make at most so many samples, chosen by the seed.")


class PredictSettings(BaseModel):
    """How answers are asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: Literal[1, 2, 3] = Field(1, description='Which prompt: 1 is "Let\'s think frame by frame".')
    seed: int = Field(0, description="Chooses the demonstration of each sample.")
