"""jax.ffi: C functions of plain buffers, as in JAX, and functions of Python."""

import ctypes
import shutil
import subprocess

import jax
import numpy as np
import pytest

import maxjax
from maxjax import ffi
from tests.support.against_jax import agree, assert_same_error, errors_of

SOURCE = """
#include <stdint.h>
void scale(void *out, const void **in) {
    for (int i = 0; i < 4; i++)
        ((float *)out)[i] = 2 * ((const float *)in[0])[i] + ((const float *)in[1])[0];
}
void split(void **out, const void **in) {
    for (int i = 0; i < 4; i++) {
        ((float *)out[0])[i] = -((const float *)in[0])[i];
        ((int32_t *)out[1])[i] = i;
    }
}
"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "code.c").write_text(SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "code.so", folder / "code.c"],
                   check=True)
    loaded = ctypes.CDLL(str(folder / "code.so"))
    for j in (jax, maxjax):
        for name in ("scale", "split"):
            j.ffi.register_ffi_target(f"test_{name}", j.ffi.pycapsule(getattr(loaded, name)),
                                      platform="cpu", api_version=0)
    return loaded


def scale(j, **options):
    return j.ffi.ffi_call("test_scale", j.ShapeDtypeStruct((4,), np.float32),
                          custom_call_api_version=1, **options)


def split(j, sequence, **options):
    structs = sequence([j.ShapeDtypeStruct((4,), np.float32), j.ShapeDtypeStruct((4,), np.int32)])
    return j.ffi.ffi_call("test_split", structs, custom_call_api_version=1, **options)


CALLS = {
    "eager": lambda j: scale(j)(X, np.float32(3)),
    "jit": lambda j: j.jit(lambda x: 2 * scale(j)(x + 1, x[0]))(X),
    "transposed operand": lambda j: scale(j)(
        j.numpy.asarray(np.arange(8, dtype=np.float32).reshape(4, 2)).T[1], np.float32(0)),
    "tuple": lambda j: split(j, tuple)(X),
    "list": lambda j: split(j, list, has_side_effect=True)(X),
    "vmap": lambda j: j.vmap(scale(j, vmap_method="sequential"), (0, None))(
        np.ones((3, 4), np.float32), np.float32(1)),
}
ERRORS = {
    "grad": lambda j: j.grad(lambda x: scale(j)(x, x[0]).sum())(X),
    "attributes": lambda j: scale(j)(X, X[0], a=1),
    "method": lambda j: scale(j, vmap_method="nothing"),
}


@pytest.mark.parametrize("name", CALLS)
def test_plain_buffers(library, name):
    agree(CALLS[name])


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(library, name):
    assert_same_error(ERRORS[name])


@pytest.mark.parametrize("call", [
    lambda j: scale(j)(object()),
    lambda j: j.vmap(scale(j), (0, None))(np.ones((3, 4), np.float32), X[1])])
def test_errors_of_other_words(library, call):
    ours, theirs = errors_of(call)
    assert type(ours) is type(theirs)


def test_functions_of_python():
    def affine(x, *, by, plus=0):
        assert isinstance(x, np.ndarray)
        return by * x + plus

    ffi.register_ffi_target("test_affine", affine)
    call = ffi.ffi_call("test_affine", maxjax.ShapeDtypeStruct((4,), np.float32),
                        vmap_method="expand_dims")
    np.testing.assert_array_equal(maxjax.jit(lambda x: call(x, by=3, plus=1))(X), 3 * X + 1)
    mapped = maxjax.vmap(lambda x: call(x, by=2))(maxjax.numpy.stack([X, X]))
    np.testing.assert_array_equal(mapped, 2 * np.stack([X, X]))
    ffi.register_ffi_target("test_affine", lambda x, **attributes: x[:2])
    with pytest.raises(RuntimeError, match="Incorrect output shape"):
        call(X, by=1).block_until_ready()


def test_what_is_not_supported_is_refused(library):
    with pytest.raises(RuntimeError, match="No registered implementation"):
        ffi.ffi_call("test_missing", maxjax.ShapeDtypeStruct((4,), np.float32))(X)
    with pytest.raises(NotImplementedError, match="api_version=0"):
        ffi.register_ffi_target("test_typed", ffi.pycapsule(library.scale))
    with pytest.raises(TypeError, match="a function or a PyCapsule"):
        ffi.register_ffi_target("test_number", 3)
    with pytest.raises(NotImplementedError, match="written against XLA"):
        ffi.include_dir()


def test_tokens_are_refused():
    assert repr(ffi.abstract_token) == repr(jax.ffi.abstract_token)
    for results in (ffi.abstract_token, [maxjax.ShapeDtypeStruct((4,), np.float32),
                                         ffi.abstract_token]):
        with pytest.raises(NotImplementedError, match="not tokens"):
            ffi.ffi_call("test_token", results)
