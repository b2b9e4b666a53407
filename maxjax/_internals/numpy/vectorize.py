"""The steps of vectorize."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from maxjax.numpy._logic import input_dimensions, output_checked, parse_signature
from maxjax.numpy._shape import broadcast_shapes

_parse_gufunc_signature = parse_signature


def _parse_input_dimensions(args: Sequence[Any], input_core_dims: Sequence[tuple[str, ...]],
                            error_context: str = "") -> tuple[Any, dict[str, int]]:
    """The shape that operands broadcast to, and the sizes of core dimensions."""
    batches, sizes = input_dimensions([x.shape for x in args], input_core_dims,
                                      f" {error_context}")
    return broadcast_shapes(*batches), sizes


def _check_output_dims(func: Callable[..., Any], dim_sizes: dict[str, int],
                       expected_output_core_dims: list[tuple[str, ...]],
                       error_context: str = "") -> Callable[..., Any]:
    return output_checked(func, expected_output_core_dims, dim_sizes, f" {error_context}")


def _apply_excluded(func: Callable[..., Any], excluded: Collection[int | str],
                    args: Sequence[Any], kwargs: dict[str, Any]
                    ) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """The function with some arguments given, and the arguments that are left."""
    given = {name: value for name, value in kwargs.items() if name in excluded}
    left = [position for position in range(len(args)) if position not in excluded]

    def applied(*values: Any, **named: Any) -> Any:
        arguments = list(args)
        for position, value in zip(left, values, strict=True):
            arguments[position] = value
        return func(*arguments, **named, **given)

    return (applied, [args[position] for position in left],
            {name: value for name, value in kwargs.items() if name not in given})
