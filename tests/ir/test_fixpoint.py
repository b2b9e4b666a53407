"""maxjax/_base/fixpoint.py: fixpoints over flags end, with an error where a rule never settles."""

import pytest

from maxjax._base.errors import InternalError
from maxjax._base.fixpoint import rounds


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_rule_that_sets_one_flag_a_round_reaches_its_fixpoint(count):
    flags, used = [False] * count, 0
    for _ in rounds(count, "a test"):
        used += 1
        if all(flags):
            break
        flags[flags.index(False)] = True
    assert all(flags) and used == count + 1


def test_a_rule_that_clears_what_it_had_set_is_an_error_that_says_whose_it_is():
    flag = False
    with pytest.raises(InternalError, match="the carries of a loop: no fixpoint of 1 flags"):
        for _ in rounds(1, "the carries of a loop"):
            flag = not flag
