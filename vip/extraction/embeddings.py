"""The vectors of frames, and of the texts of what was found in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vip.extraction.analyze import FrameAnalysis, Vector
from vip.extraction.object_text import text_of
from vip.protocols import Embedder
from vip.records import Embeddings


def embeddings_of(analyses: Sequence[FrameAnalysis], embedder: Embedder, known: Mapping[str, Vector] | None = None) -> Embeddings:
    """Return the vectors of the frames and of the texts of what was detected in them; each text is embedded once.

    Args:
        known: vectors of texts that this embedder has seen in an earlier run.
    """
    texts = [text_of(analysis.detections or ()) for analysis in analyses]
    vectors = dict(known or {})
    new = sorted(set(texts) - set(vectors))
    vectors.update(zip(new, embedder.embed_texts(new), strict=True))
    return Embeddings(
        np.array([analysis.vector for analysis in analyses], np.float32),
        np.array([vectors[text] for text in texts], np.float32),
        identity_of(embedder),
    )


def identity_of(embedder: Embedder) -> str:
    """Return what tells the vectors of this embedder from those of others, also of other weights under its name."""
    return embedder.capabilities.identity or embedder.name
