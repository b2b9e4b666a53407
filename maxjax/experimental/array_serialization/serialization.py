"""jax.experimental.array_serialization.serialization: arrays in files, by TensorStore.

TensorStore is a package of its own (``pip install tensorstore``), as for JAX. Files are JAX's: what
one of the two writes the other reads.
"""

from __future__ import annotations

import abc
import asyncio
import os
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np
import tensorstore as ts

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._runtime.assembly import make_array_from_callback

__all__ = [
    "TS_CONTEXT", "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage", "run_deserialization", "run_serialization",
]

TS_CONTEXT = ts.Context({"file_io_concurrency": {"limit": 128}})
_REMOTE = {"gs": "gcs", "s3": "s3"}


class BarrierTimeoutError(Exception):
    """Another process did not come; never raised, since there is none."""


# --- where arrays are -----------------------------------------------------------------------------

def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False,
                         process_idx: int | None = None, arr: Any = None,
                         driver: str = "zarr") -> dict[str, Any]:
    """TensorStore's description of an array in a file.

    Args:
      ckpt_path: a path, or a URL of ``gs://`` or ``s3://``.
      ocdbt: whether the array shares a database with others of its folder.
      process_idx: the process that writes to a database of its own.
      arr: gives the metadata of a new array.
      driver: "zarr" or "zarr3".

    Raises:
      ValueError: ``ckpt_path`` is not absolute.
    """
    path = os.fspath(ckpt_path)
    if "://" not in path:
        if not os.path.isabs(path):
            raise ValueError(f"Checkpoint path should be absolute. Got {path}")
        path = os.path.normpath(path)
    store: dict[str, Any]
    if ocdbt:
        folder, name = os.path.split(path)
        if process_idx is not None:
            folder = f"{folder}/ocdbt.process_{process_idx}"
        store = {"driver": "ocdbt", "base": _files(folder), "path": name}
    else:
        store = _files(path)
    spec: dict[str, Any] = {"driver": driver, "kvstore": store}
    if arr is not None:
        spec["metadata"] = _metadata(arr, driver)
    return spec


def _files(path: str) -> dict[str, Any]:
    scheme, found, rest = path.partition("://")
    if not found:
        return {"driver": "file", "path": path}
    bucket, _, inner = rest.partition("/")
    if scheme not in _REMOTE or not inner:
        raise ValueError(
            "The ckpt_path should contain the bucket name and the file path inside the bucket. "
            f"Got: {path}")
    return {"driver": _REMOTE[scheme], "bucket": bucket, "path": inner}


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether an array is not among this machine's files."""
    if isinstance(tspec, str):
        return re.match(r"(gs|s3)://", tspec) is not None
    store = tspec.get("kvstore", tspec)
    if isinstance(store, str):
        return is_remote_storage(store)
    if "base" in store:
        return is_remote_storage({"kvstore": store["base"]})
    return store.get("driver") in _REMOTE.values()


def _metadata(value: Any, driver: str) -> dict[str, Any]:
    """Chunks are the shards, so that each is written as a whole."""
    chunk = [max(size, 1) for size in _shard_shape(value)]
    if driver == "zarr3":
        return {"shape": list(value.shape), "data_type": np.dtype(value.dtype).name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}
    code = "bfloat16" if value.dtype == dtypes.bfloat16 else np.dtype(value.dtype).str
    return {"compressor": {"id": "zstd"}, "shape": list(value.shape), "chunks": chunk,
            "dtype": code}


def _shard_shape(value: Any) -> tuple[int, ...]:
    sharding = getattr(value, "sharding", None)
    return tuple(value.shape if sharding is None else sharding.shard_shape(value.shape))


# --- one array ------------------------------------------------------------------------------------

async def async_serialize(arr_inp: Any, tensorstore_spec: Any,
                          commit_future: list[Any] | None = None, context: Any = TS_CONTEXT,
                          chunk_layout: Any = None, primary_host: int | None = None,
                          replica_id: int = 0, transaction: Any = None) -> None:
    """Writes one array: of each shard one copy.

    Args:
      tensorstore_spec: of ``get_tensorstore_spec``; without metadata it is the array's.
      commit_future: takes what is still to be written; by default the call waits.
      primary_host: the process that makes the file; None: each.
      replica_id: the copy that is written.
    """
    spec = dict(tensorstore_spec)
    if "metadata" not in spec:
        spec["metadata"] = _metadata(arr_inp, spec.get("driver", "zarr"))
    store = await ts.open(ts.Spec(spec), create=True, open=True, context=context,
                          transaction=transaction)
    shards = getattr(arr_inp, "addressable_shards", None)
    if shards is None:
        parts = [((slice(None),) * np.ndim(arr_inp), np.asarray(arr_inp))]
    else:
        parts = [(shard.index, np.asarray(shard.data)) for shard in shards
                 if shard.replica_id == replica_id]
    writes = [store[index].write(part) if index else store.write(part) for index, part in parts]
    if commit_future is not None:
        for write in writes:
            await write.copy
        commit_future.extend(write.commit for write in writes)
    else:
        await asyncio.gather(*(write.commit for write in writes))


async def async_deserialize(in_type: Any, tensorstore_spec: Any,
                            global_shape: Sequence[int] | None = None, dtype: Any = None,
                            byte_limiter: Any = None, context: Any = TS_CONTEXT,
                            chunk_layout: Any = None, assume_metadata: bool = False) -> Any:
    """Reads one array.

    Args:
      in_type: its sharding, or a ``jax.ShapeDtypeStruct`` or a ``Format`` with one.
      global_shape: the shape; a larger one than the file's is filled with zeros.
      dtype: the dtype; the file's by default.
    """
    sharding = getattr(in_type, "sharding", in_type)
    store = await ts.open(ts.Spec(tensorstore_spec) if isinstance(tensorstore_spec, dict)
                          else tensorstore_spec, open=True, context=context)
    if global_shape is None:
        global_shape = getattr(in_type, "shape", None)
    if dtype is None:
        dtype = getattr(in_type, "dtype", None)
    shape = tuple(store.shape if global_shape is None else global_shape)
    kind = np.dtype(store.dtype.numpy_dtype if dtype is None else dtypes.as_dtype(dtype))
    whole = np.zeros(shape, kind)
    inside = tuple(slice(0, min(mine, theirs))
                   for mine, theirs in zip(shape, store.shape, strict=True))
    part = await (store[inside] if inside else store).read()
    whole[inside] = part.astype(kind)
    return make_array_from_callback(shape, sharding, lambda index: whole[index])


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Any]) -> None:
    """Writes arrays, and waits until they are written."""
    _run([async_serialize(array, spec)
          for array, spec in zip(arrays, tensorstore_specs, strict=True)])


def run_deserialization(shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
                        global_shapes: Sequence[Any] | None = None,
                        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
    """Reads arrays, with these shardings."""
    shapes = [None] * len(shardings) if global_shapes is None else global_shapes
    kinds = [None] * len(shardings) if dtypes is None else dtypes
    return _run([async_deserialize(sharding, spec, shape, kind)
                 for sharding, spec, shape, kind in zip(
                     shardings, tensorstore_specs, shapes, kinds, strict=True)])


def _run(tasks: Sequence[Awaitable[Any]]) -> list[Any]:
    async def gather() -> list[Any]:
        return list(await asyncio.gather(*tasks))

    return asyncio.run(gather())


# --- many arrays, beside the program --------------------------------------------------------------

class AsyncManager:
    """Waits for writes in a thread of its own.

    Args:
      timeout_secs: for other processes, of which there are none.
    """

    def __init__(self, timeout_secs: int = 300):
        self._timeout_secs = timeout_secs
        self._commits: list[Any] = []
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def _add_futures(self, futures: Sequence[Any]) -> None:
        self._commits = list(futures)

    def _start_async_commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        self._thread = threading.Thread(target=self._commit, args=(on_commit_callback,))
        self._thread.start()

    def _commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        try:
            for commit in self._commits:
                commit.result()
            if on_commit_callback is not None:
                on_commit_callback()
        except Exception as error:      # raised where the program asks
            self._error = error

    def check_for_errors(self) -> None:
        """Raises what a write has raised."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Waits until everything is written, and raises what a write has raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """What saves arrays while the program goes on."""

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raises what a write has raised."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Waits until everything is written."""

    @abc.abstractmethod
    def serialize(self, arrays: Any, tensorstore_specs: Any, *,
                  on_commit_callback: Callable[[], None]) -> None:
        """Writes arrays, and then calls ``on_commit_callback``."""

    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None) -> Any:
        """Reads arrays."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Saves arrays while the program goes on.

    The arrays' values are those at the call: the program may go on at once.
    """

    def serialize(self, arrays: Any, tensorstore_specs: Any, *,
                  on_commit_callback: Callable[[], None] | None = None,
                  transaction: Any = None) -> None:
        """Writes arrays, and then calls ``on_commit_callback``.

        Raises:
          Exception: an earlier write failed.
        """
        self.wait_until_finished()
        commits: list[Any] = []
        _run([async_serialize(array, spec, commits, transaction=transaction)
              for array, spec in zip(arrays, tensorstore_specs, strict=True)])
        self._add_futures(commits)
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None,
                             transaction: Any = None) -> None:
        """Writes arrays to these paths."""
        self.serialize(arrays, [get_tensorstore_spec(path) for path in paths],
                       on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[dict[str, Any]],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
        """Reads arrays, after what is still being written."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes,
                                   concurrent_gb)

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str],
                               global_shapes: Sequence[Any] | None = None,
                               dtypes: Sequence[Any] | None = None,
                               concurrent_gb: int = 32) -> list[Any]:
        """Reads arrays from these paths."""
        return self.deserialize(shardings, [get_tensorstore_spec(path) for path in paths],
                                global_shapes, dtypes, concurrent_gb)


explain_missing_names(__name__)
