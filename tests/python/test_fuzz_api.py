"""Random calls of the public API: no crash, no damaged graph (random_calls.py hunts longer)."""
import pytest
from random_calls import Hunt


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("evil", [False, True], ids=["plain", "evil"])
def test_random_calls(seed, evil):
    done = Hunt(seed, evil).run(700)
    assert sum(count for name, count in done.items() if "raised" not in name) > 200
