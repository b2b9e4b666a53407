"""Compiled functions as bytes, and functions with rules that divide them."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import maxjax
from maxjax import numpy as jnp
from maxjax.experimental.custom_partitioning import custom_partitioning
from maxjax.experimental.serialize_executable import deserialize_and_load, serialize

X = np.arange(4, dtype=np.float32)


def compiled(function, *args, **kwargs):
    return maxjax.jit(function).lower(*args, **kwargs).compile()


def test_a_loaded_function_gives_what_it_gave():
    function = compiled(lambda x, y: {"sum": x["a"] + y, "sin": jnp.sin(x["a"])}, {"a": X}, y=X)
    loaded = deserialize_and_load(*serialize(function))
    expected, found = (f({"a": X + 1}, y=X) for f in (function, loaded))
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    assert loaded.as_text() == function.as_text()


def test_arguments_of_other_types_are_refused():
    loaded = deserialize_and_load(*serialize(compiled(lambda x: x + 1, X)))
    with pytest.raises(TypeError):
        loaded(X.astype(np.int32))


def test_structures_of_another_function_are_refused():
    serialized, _, out_tree = serialize(compiled(lambda x: x + 1, X))
    _, in_tree, _ = serialize(compiled(lambda x, y: x + y, X, X))
    with pytest.raises(ValueError, match="the serialized program takes"):
        deserialize_and_load(serialized, in_tree, out_tree)


def test_references_cannot_be_serialized():
    ref = maxjax.new_ref(X)
    with pytest.raises(ValueError, match="serialize with a closed-over"):
        serialize(compiled(lambda x: ref[...] + x, X))


def test_callbacks_cannot_be_serialized():
    function = compiled(lambda x: maxjax.pure_callback(np.sin, x, x), X)
    with pytest.raises(NotImplementedError):
        serialize(function)


def test_custom_partitioning_computes_the_function():
    @custom_partitioning
    def twice(x):
        return 2 * x

    twice.def_partition(lambda mesh, args, result: (mesh, None, None, None), sharding_rule="i -> i")
    np.testing.assert_array_equal(twice(X), 2 * X)
    np.testing.assert_array_equal(maxjax.jit(twice)(X), 2 * X)


def test_static_arguments_of_custom_partitioning():
    power = custom_partitioning(lambda x, n: x ** n, static_argnums=(1,))
    power.def_partition(lambda *_: (None, None, None, None), sharding_rule="i -> i")
    np.testing.assert_array_equal(power(X, 3), X ** 3)


# --- arguments by name ----------------------------------------------------------------------------

@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
@pytest.mark.parametrize("name", ["a", "args"])
def test_names_of_positional_arguments_are_refused(option, name):
    def function(a, /, b, *args, **kwargs):
        return b

    messages = []
    for j in (maxjax, jax):
        with pytest.raises(ValueError) as info:
            j.jit(function, **{option: (name, "b")})
        messages.append(str(info.value))
    assert messages[0] == messages[1]


def test_names_need_a_signature():
    class NoSignature:
        @property
        def __signature__(self):
            raise TypeError

        def __call__(self, *args):
            return None

    with pytest.raises(ValueError, match="Pass donate_argnums instead of donate_argnames"):
        maxjax.jit(NoSignature(), donate_argnames="a")(X)


def test_a_list_of_tangents_for_a_tuple_is_refused():
    for j in (maxjax, jax):
        with pytest.raises(TypeError, match="must have the same tree structure"):
            j.jvp(lambda x: x, (X,), [X])


def test_text_is_no_operand():
    messages = []
    for j in (maxjax, jax):
        with pytest.raises(TypeError) as info:
            j.lax.add(X, np.array("text"))
        messages.append(str(info.value))
    assert messages[0] == messages[1]


def test_large_python_integers_become_floats():
    for value in (2**100, -2**70, 2**31 + 1):
        ours, theirs = (j.lax.convert_element_type(value, np.float32) for j in (maxjax, jax))
        np.testing.assert_array_equal(ours, theirs)


def test_copy_to_host_async_calls_the_leaves():
    class Leaf:
        called = 0

        def copy_to_host_async(self):
            self.called += 1

    leaf = Leaf()
    given = [leaf, 1, object()]
    assert maxjax.copy_to_host_async(given) is given and leaf.called == 1


def test_a_function_without_text_has_a_jitted_one_with():
    class Wordless:
        def __call__(self):
            return None

        def __repr__(self):
            raise ValueError

    assert repr(maxjax.jit(Wordless())) == repr(jax.jit(Wordless())) == "<PjitFunction>"


def test_didnt_want_is_a_result_of_jit():
    marks = (maxjax.ad.DontWant(), maxjax.ad.GradValue())
    function = maxjax.vjp(lambda x, y: x * y, X, X)[1].with_refs(*marks)
    left, right = maxjax.jit(lambda x: function(x))(X)
    assert left == maxjax.ad.DidntWant()
    np.testing.assert_array_equal(right, X * X)
