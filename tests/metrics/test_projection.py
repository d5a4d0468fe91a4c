"""t-SNE: what is alike lies together."""

from __future__ import annotations

import numpy as np
import pytest

from vip.errors import BackendError
from vip.metrics.projection import check_tsne, project_tsne

VECTORS = np.repeat(np.eye(3), 8, axis=0) + np.random.default_rng(0).normal(0, 0.02, (24, 3))
"""Three groups of eight."""


@pytest.mark.slow
@pytest.mark.extra("sklearn")
def test_groups_stay_groups_and_a_seed_gives_one_map() -> None:
    places = project_tsne(VECTORS, seed=1)
    assert places.shape == (24, 2)
    assert (places.min(), places.max()) == (0, 1)
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(24)
    assert (distances.argmin(axis=1) // 8 == np.arange(24) // 8).all()
    assert np.array_equal(project_tsne(VECTORS, seed=1), places)
    assert not np.array_equal(project_tsne(VECTORS, seed=2), places)


def test_three_rows_are_no_map() -> None:
    with pytest.raises(ValueError, match="4 rows or more, got 3"):
        project_tsne(VECTORS[:3], seed=0)


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.metrics.projection.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"Run `pip install 'vip-keyframes\[eval\]'`"):
        check_tsne()
