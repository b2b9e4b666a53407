"""The calls in StableHLO of what XLA has on CPUs: LAPACK's routines, and what says nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._primitives.linalg_factors import geqrf_p
from maxjax._stablehlo.program import Dense, Operation, Unreadable, Value
from maxjax.export._elementwise import bit_generator
from maxjax.export._reader import (
    Reader,
    ShapeError,
    checked_bind,
    known_sizes,
    result_type,
    word,
)

_LAPACK = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
Routine = Callable[[Operation, dict[str, Any], list[Any]], list[Any]]
# What says how values lie, or is for other devices.
_SAYS_NOTHING = frozenset(("Sharding", "annotate_device_placement", "LayoutConstraint",
                           "xla.sdy.FuncResultSharding"))


def custom_call(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    target = word(operation, "call_target_name")
    if target in _SAYS_NOTHING:
        return operands[:1]
    if target == "shape_assertion":
        _assert_shape(operation, operands)
        return []
    if target == "stablehlo.dynamic_reduce_window":
        return _reduce_window(reader, operation, operands)
    if target == "stablehlo.dynamic_rng_bit_generator":
        state, sizes = operands
        return bit_generator(operation, state, known_sizes(reader, operation, sizes))
    if target == "ApproxTopK":
        return _top_k(operation, operands)
    found = _LAPACK.fullmatch(target)
    routine = None if found is None else _ROUTINES.get(found[2])
    if routine is None:
        raise Unreadable(operation.where, f"the custom call {target[:60]!r} is not supported")
    if found is not None and found[2] == "geqp3" and not reader.is_zero(operation.operands[1]):
        raise Unreadable(operation.where, "geqp3 with columns that stay in front")
    shaped, operands = _with_shapes(reader, operation, operands)
    results = routine(shaped, _options(operation), operands)
    missing = [number for number, x in enumerate(results) if x is None]
    for number in missing:
        if operation.results[number] in reader.used:
            raise Unreadable(operation.where, f"the custom call {target}: its result {number}")
    return [_zeros(shaped, number) if x is None else x for number, x in enumerate(results)]


def _with_shapes(reader: Reader, operation: Operation, operands: list[Any]
                 ) -> tuple[Operation, list[Any]]:
    """A call whose last operands say its results' shapes, without them."""
    places = operation.attributes.get("indices_of_shape_operands")
    if places is None:
        return operation, operands
    count = len(operands) - len(operation.results)
    if not isinstance(places, Dense) or count < 0 or (
            places.array().tolist() != [*range(count, len(operands))]):
        raise Unreadable(operation.where, "a custom call whose shapes are not its last operands")
    results = [Value(result_type(operation, number)._replace(
        shape=known_sizes(reader, operation, x))) for number, x in enumerate(operands[count:])]
    return dataclasses.replace(operation, operands=operation.operands[:count],
                               results=results), operands[:count]


def _options(operation: Operation) -> dict[str, Any]:
    for key in ("mhlo.backend_config", "backend_config"):
        found = operation.attributes.get(key)
        if isinstance(found, dict):
            return found
    return {}


def _zeros(operation: Operation, number: int) -> Any:
    type = result_type(operation, number)
    return lax.full(tuple([size or 0 for size in type.shape]), 0, type.dtype)


def _info(operation: Operation) -> Any:
    """That it has succeeded: where not, the results are NaN."""
    return _zeros(operation, len(operation.results) - 1)


def _letter(operation: Operation, options: dict[str, Any], name: str, allowed: str) -> str:
    value = options.get(name)
    if type(value) is not int or chr(value & 0x7F) not in allowed:
        raise Unreadable(operation.where, f"the option {name} of LAPACK is {str(value)[:20]}")
    return chr(value)


def _assert_shape(operation: Operation, operands: list[Any]) -> None:
    """A condition on sizes, with a message for those that do not fulfil it."""
    holds, *sizes = operands
    if isinstance(holds, np.ndarray) and not holds.all():
        message = operation.attributes.get("error_message", "a condition on sizes does not hold")
        known = [str(int(size)) if isinstance(size, np.ndarray) else "?" for size in sizes]
        raise ShapeError(re.sub(r"\{(\d+)\}", lambda found: known[int(found[1])]
                                if int(found[1]) < len(known) else "?", str(message)))


_OF_WINDOWS = ("window_dimensions", "window_strides", "base_dilations", "window_dilations",
               "padding")


def _reduce_window(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    """A reduction over windows whose sizes are operands, by a function of the program."""
    called = operation.attributes.get("called_computations")
    name = getattr(called[0], "name", "") if isinstance(called, list) and called else ""
    function = reader.module.functions.get(name)
    count = len(operands) - len(_OF_WINDOWS)
    if function is None or count != 2:
        raise Unreadable(operation.where, "a reduction over windows of other operands than JAX's")
    known = [reader.known(x, operation, name)
             for x, name in zip(operands[count:], _OF_WINDOWS, strict=True)]
    return reader.rules["stablehlo.reduce_window"](reader, dataclasses.replace(
        operation, name="stablehlo.reduce_window", operands=operation.operands[:count],
        regions=[function.block], attributes={
            name: Dense(x, x.shape) for name, x in zip(_OF_WINDOWS, known, strict=True)}),
        operands[:count])


def _top_k(operation: Operation, operands: list[Any]) -> list[Any]:
    options = _options(operation)
    x, places, *_ = operands
    k, axis = options.get("top_k"), options.get("reduction_dim")
    called = operation.attributes.get("called_computations")
    name = getattr(called[0], "name", "") if isinstance(called, list) and called else ""
    kinds = re.fullmatch(r"top_k_(gt|lt)_\w+_comparator", name)
    if type(k) is not int or type(axis) is not int or kinds is None:
        raise Unreadable(operation.where, "ApproxTopK with other options than JAX's")
    function = lax.approx_max_k if kinds[1] == "gt" else lax.approx_min_k
    return list(function(x, k, axis, float(options.get("recall_target", 0.95))))


# --- LAPACK ---------------------------------------------------------------------------------------

def _potrf(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    _letter(operation, options, "uplo", "L")
    return [lax.linalg.cholesky(operands[0], symmetrize_input=False), _info(operation)]


def _trsm(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    form = _letter(operation, options, "trans_x", "NTC")
    return [lax.linalg.triangular_solve(
        *operands, left_side=_letter(operation, options, "side", "LR") == "L",
        lower=_letter(operation, options, "uplo", "LU") == "L", transpose_a=form != "N",
        conjugate_a=form == "C", unit_diagonal=_letter(operation, options, "diag", "NU") == "U")]


def _getrf(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    factors, pivots, _ = lax.linalg.lu(operands[0])
    return [factors, lax.add(pivots, np.ones(np.shape(pivots), np.int32)), _info(operation)]


def _gtsv(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    return [None, None, None, lax.linalg.tridiagonal_solve(*operands), _info(operation)]


def _geqrf(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    return list(checked_bind(geqrf_p, operation, operands))


def _geqp3(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    """The reflections of the columns in their order."""
    x = operands[0]
    _, _, order = lax.linalg.qr(x, pivoting=True)
    batch = tuple(range(np.ndim(x) - 2))
    rank = np.ndim(x)
    columns = lax.gather(
        x, lax.reshape(order, (*np.shape(order), 1)), lax.GatherDimensionNumbers(
            (rank - 1,), (rank - 1,), (rank - 1,), batch, batch),
        (*(1 for _ in batch), np.shape(x)[-2], 1), mode="clip")
    packed, taus = checked_bind(
        geqrf_p, operation, [lax.transpose(columns, (*batch, rank - 1, rank - 2))])
    return [packed, lax.add(order, np.ones(np.shape(order), np.int32)), taus]


def _orgqr(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    return [lax.linalg.householder_product(*operands)]


def _ormqr(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    left, transpose = options.get("left"), options.get("transpose")
    if type(left) is not bool or type(transpose) is not bool:
        raise Unreadable(operation.where, "ormqr with other options than JAX's")
    return [lax.linalg.ormqr(*operands, left=left, transpose=transpose)]


def _syevd(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    lower = _letter(operation, options, "uplo", "LU") == "L"
    vectors, values = lax.linalg.eigh(operands[0], lower=lower, symmetrize_input=False)
    has_vectors = _letter(operation, options, "mode", "VN") == "V"
    return [vectors if has_vectors else None, values, _info(operation)]


def _geev(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    left, right = (_letter(operation, options, name, "VN") == "V"
                   for name in ("compute_left", "compute_right"))
    values, *vectors = lax.linalg.eig(operands[0], compute_left_eigenvectors=left,
                                      compute_right_eigenvectors=right)
    found = iter(vectors)
    is_complex = np.dtype(operands[0].dtype).kind == "c"
    parts = [values] if is_complex else [lax.real(values), lax.imag(values)]
    return [*parts, next(found) if left else None, next(found) if right else None,
            _info(operation)]


def _gees(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    _letter(operation, options, "sort", "N")
    has_vectors = _letter(operation, options, "mode", "VN") == "V"
    triangle, *vectors = lax.linalg.schur(operands[0], compute_schur_vectors=has_vectors)
    others = len(operation.results) - 3
    return [triangle, vectors[0] if vectors else None, *[None] * others, _info(operation)]


def _gehrd(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    if options.get("low") != 1 or options.get("high") != np.shape(operands[0])[-1]:
        raise Unreadable(operation.where, "gehrd of a part of a matrix")
    return [*lax.linalg.hessenberg(operands[0]), _info(operation)]


def _sytrd(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
    lower = _letter(operation, options, "uplo", "LU") == "L"
    return [*lax.linalg.tridiagonal(operands[0], lower=lower), _info(operation)]


def _svd(by_qr: bool) -> Routine:
    def routine(operation: Operation, options: dict[str, Any], operands: list[Any]) -> list[Any]:
        mode = _letter(operation, options, "mode", "ASN")
        algorithm = lax.linalg.SvdAlgorithm.QR if by_qr else None
        if mode == "N":
            values = lax.linalg.svd(operands[0], compute_uv=False, algorithm=algorithm)
            return [None, values, None, None, _info(operation)]
        left, values, right = lax.linalg.svd(operands[0], full_matrices=mode == "A",
                                             algorithm=algorithm)
        return [None, values, left, right, _info(operation)]
    return routine


_ROUTINES: dict[str, Routine] = {
    "potrf": _potrf, "trsm": _trsm, "getrf": _getrf, "gtsv": _gtsv, "geqrf": _geqrf,
    "geqp3": _geqp3, "orgqr": _orgqr, "ungqr": _orgqr, "ormqr": _ormqr, "unmqr": _ormqr,
    "syevd": _syevd, "heevd": _syevd, "geev": _geev, "gees": _gees, "gehrd": _gehrd,
    "sytrd": _sytrd, "hetrd": _sytrd, "gesdd": _svd(False), "gesvd": _svd(True),
}
