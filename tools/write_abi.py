"""Writes ``kernels/abi.mojo`` from the table of what Python and Mojo agree on.

    python -m tools.write_abi
"""

from __future__ import annotations

from maxjax._max import kernel_digest
from maxjax._max.mojo import abi


def main() -> None:
    path = kernel_digest.PACKAGE / "abi.mojo"
    path.write_text(abi.kernels(), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
