"""vip.baselines.installed: what is missing is said, and one process writes"""

from __future__ import annotations

import pytest

from vip.baselines import installed
from vip.baselines.installed import LIBRARIES, check_installed, is_first_process
from vip.errors import BackendError


@pytest.mark.parametrize("missing", LIBRARIES)
def test_a_library_that_is_missing_is_named_with_what_installs_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(BackendError, match=rf"with {missing}, which is not installed\. Run: pip install 'vip-keyframes\[train\]'"):
        check_installed()
    monkeypatch.setattr(installed, "find_spec", lambda name: object())
    check_installed()


@pytest.mark.parametrize(
    ("variables", "is_first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "0", "NODE_RANK": "0"}, True),
        ({"LOCAL_RANK": "1"}, False),
        ({"NODE_RANK": "1", "LOCAL_RANK": "0"}, False),
    ],
)
def test_the_first_process_is_that_of_rank_0_on_node_0(variables: dict[str, str], is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCAL_RANK", "NODE_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_first_process() is is_first
