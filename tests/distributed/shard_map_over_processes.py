"""The programs of ``tests/sharding/shard_map_programs.py`` on 8 devices of several processes.

Process 0 prints the outcomes as JSON, in a line of their own.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import maxjax as jax
from maxjax.experimental import multihost_utils
from tests.sharding.shard_map_programs import Library, normalized, programs


def outcome(program: Any) -> Any:
    try:
        result = program()
        if isinstance(result, str):
            return {"text": normalized(result)}
        leaves = [leaf if getattr(leaf, "is_fully_addressable", True)
                  else multihost_utils.process_allgather(leaf, tiled=True)
                  for leaf in jax.tree.leaves(result)]
    except Exception as error:
        return {"error": type(error).__name__, "text": normalized(str(error))}
    return {"values": [{"dtype": str(leaf.dtype), "shape": list(leaf.shape),
                        "data": np.asarray(leaf).astype(float).ravel().tolist()}
                       for leaf in leaves]}


def main() -> None:
    if len(sys.argv) > 1:
        jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    else:
        jax.distributed.initialize()
    found = {name: outcome(program) for name, program in programs(Library("maxjax")).items()}
    if jax.process_index() == 0:
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
