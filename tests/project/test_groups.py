"""Tests of one group run in one worker."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("known")
def test_groups_are_known(request):
    """pytest-xdist knows a test's group by its id; else every worker would compile everything."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("tests are not distributed by groups")
    assert request.node.nodeid.endswith("@known")
