"""What Python and Mojo agree on is one table."""

from __future__ import annotations

import pytest

pytest.importorskip("max.engine")

from maxjax._max.mojo import pack_exports
from maxjax._max.mojo.pack_library import SOURCES, Pack


@pytest.mark.parametrize("unit", pack_exports.FAMILIES)
def test_what_the_table_exports_no_file_exports_itself(unit):
    families = pack_exports.FAMILIES[unit]
    names = [name for family in families for name in family.calls]
    assert len(names) == len({*names})
    own = (SOURCES / f"{unit}.mojo").read_text(encoding="utf-8")
    text = next(x.source for x in Pack(prebuilt=None).units if x.name == unit)
    for name in names:
        assert f"def {name}(" not in own
        assert text.count(f'@export("{name}")\n') == 1
