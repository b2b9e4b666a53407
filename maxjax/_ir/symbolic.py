"""Symbolic sizes without sizes at hand: what programs for every size are exported with.

A ``SymbolicScope`` answers comparisons of its dimensions by what holds for all sizes: symbols are
at least 1, and the scope's constraints hold. Where neither answer holds for all, the comparison is
an error; but an equality that does not always hold is false.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from maxjax._base.errors import InconclusiveDimensionOperation, UnexpectedDimVar
from maxjax._base.source import current_line
from maxjax._ir.dimensions import Dimension, combined, is_dimension, symbol_in
from maxjax._ir.polynomials import Terms
from maxjax._ir.shape_parser import Parser, parse_dimension
from maxjax._ir.size_scopes import Extreme, Scope

if TYPE_CHECKING:
    from maxjax._ir.dimensions import Size

_SITE = "https://docs.jax.dev/en/latest/501/shape-polymorphism.html"
# The most constraints that an inequality is derived from.
_DEPTH = 3
# Sizes are compared with no numbers this large except the limits of integers.
_LARGE = 1 << 28
# Where an object that is no number is a TypeError of Python's.
_WHERE_PYTHON_ASKS = ("an integer", "float()", "complex()", "a NumPy array")


class Constraint(NamedTuple):
    """``difference >= 0``, or ``difference == 0``."""

    difference: Any
    is_equality: bool
    text: str

    def holds(self, value: Size) -> bool:
        return bool(value == 0 if self.is_equality else value >= 0)


class SymbolicScope(Scope):
    """A set of symbols and what is known of their sizes.

    Args:
      constraints_str: texts such as ``"a >= 3"``, ``"a*b <= 100"`` or ``"mod(a, 2) == 0"``. The
        left side of an equality is from then on written as its right side.

    Raises:
      ValueError: a constraint has no comparison, cannot be read, is never true, or is an equality
        with more than one term on the left.

    >>> scope = jax.export.SymbolicScope(["a >= 3"])
    >>> a, = jax.export.symbolic_shape("a", scope=scope)
    >>> a > 2
    True
    """

    def __init__(self, constraints_str: Sequence[str] = ()):
        super().__init__({})
        if isinstance(constraints_str, str):
            raise ValueError("The symbolic constraints should be a sequence of strings. Got "
                             f"{constraints_str!r}")
        self.decide = self._decide
        self.constraints: list[Constraint] = []
        self.bounds: dict[str, tuple[float, float]] = {}
        self._line = current_line()
        for text in constraints_str:
            self._add(text)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.closed = False

    def __repr__(self) -> str:
        texts = "".join(f"\n  {constraint.text}" for constraint in self.constraints)
        place = "" if self._line is None else f" created at {self._line.with_column()}"
        return f"{id(self)}{place}" + (f" with constraints:{texts}" if texts else "")

    def _add(self, text: str) -> None:
        relation = next((op for op in ("==", ">=", "<=") if op in text), None)
        if relation is None:
            raise ValueError(
                "Constraint parsing error: must contain one of '==' or '>=' or '<='")
        left, right = (parse_dimension(part, self) for part in text.split(relation, 1))
        difference = right - left if relation == "<=" else left - right
        constraint = Constraint(difference, relation == "==", text)
        if not is_dimension(difference):
            if not constraint.holds(difference):
                raise ValueError(f"Unsatisfiable explicit constraint: {text}")
            return
        self._bound_symbol(difference)
        if constraint.is_equality:
            self._bound_symbol(-difference)
            constraint = self._rewrite(left, right, text)
        self.constraints.append(constraint)

    def _rewrite(self, left: Size, right: Size, text: str) -> Constraint:
        """Makes an equality a rule: its left side is written as its right side."""
        remainder = self._as_remainder(left)
        if remainder is not None:       # mod(a, b) is a - b*floordiv(a, b)
            above, left = remainder
            if not is_dimension(right) and right == 0:
                text = f"{left} == {above}"
            right = above - right
        if not is_dimension(left) or len(left.terms) != 1:
            raise ValueError(f"Invalid equality constraint: {text}. The left-hand-side must be of "
                             "the form `term * coefficient`.")
        constraint = Constraint(left - right, True, text)
        (monomial, factor), = left.terms.items()
        terms: Terms = right.terms if is_dimension(right) else {(): right}
        self.rules[monomial] = factor, terms
        return constraint

    def _as_remainder(self, dimension: Size) -> tuple[Dimension, Dimension] | None:
        """(a, b*floordiv(a, b)) where a dimension is their difference."""
        terms = dimension.terms if is_dimension(dimension) else {}
        for monomial in terms:
            for name, _ in monomial:
                if name in self.quotients:
                    above, below = self.quotients[name]
                    multiple = below * Dimension(self, {((name, 1),): 1})
                    if terms == (above - multiple).terms:
                        return above, multiple
        return None

    def _bound_symbol(self, difference: Dimension) -> None:
        """Records what ``factor * symbol + rest >= 0`` says of a single symbol."""
        variable, rest = difference.split_constant()
        if len(variable.terms) != 1:
            return
        (monomial, factor), = variable.terms.items()
        if len(monomial) != 1 or monomial[0][1] != 1 or (
                self.operands(monomial[0][0]) is not None):
            return
        name = monomial[0][0]
        low, high = self.bounds.get(name, (1, math.inf))
        if factor > 0:
            low = max(low, -(rest // factor))
        else:
            high = min(high, rest // -factor)
        self.bounds[name] = low, high

    # --- what holds for all sizes ---
    def lower(self, dimension: Dimension) -> float:
        return self._lower(dimension, _DEPTH)

    def _lower(self, dimension: Size, depth: int) -> float:
        if not is_dimension(dimension):
            return dimension
        best = self._interval(dimension)[0]
        if not depth:
            return best
        for known in self._known():
            for monomial, coefficient in known.terms.items():
                own = dimension.terms.get(monomial, 0)
                if monomial and own and own // coefficient > 0:
                    # dimension = times * known + rest, and known >= 0
                    rest = combined(dimension, known, -(own // coefficient))
                    best = max(best, self._lower(rest, depth - 1))
                    break
        for name in self._extremes_in(dimension):
            # It is one of the two.
            best = max(best, min(self._lower(_replaced(dimension, name, value), depth - 1)
                                 for value in self.extremes[name][1:]))
        return best

    def _extremes_in(self, dimension: Dimension) -> set[str]:
        return {atom for monomial in dimension.terms for atom, _ in monomial
                if atom in self.extremes}

    def extreme(self, operation: str, left: Size, right: Size) -> Any:
        """The greater size if one is for all sizes of the symbols, else a maximum of the two; or
        the minimum."""
        difference: Any = left - right
        if operation == "min":
            difference = -difference
        if self.lower(difference) >= 0:
            return left
        if self.lower(-difference) >= 0:
            return right
        name = f"{operation}({left}, {right})"
        self.extremes[name] = Extreme(operation, *(
            size if is_dimension(size) else Dimension(self, {(): size})
            for size in (left, right)))
        return Dimension(self, {((name, 1),): 1})

    def _known(self) -> Iterator[Dimension]:
        """What is never below 0: the constraints, and the remainders of divisions."""
        for constraint in self.constraints:
            yield constraint.difference
            if constraint.is_equality:
                yield Dimension(self, {
                    monomial: -value for monomial, value in constraint.difference.terms.items()})
        for name, (operation, *pair) in list(self.extremes.items()):
            atom = Dimension(self, {((name, 1),): 1})
            for size in pair:
                above_size = atom - size if operation == "max" else size - atom
                if is_dimension(above_size):
                    yield above_size
        for name, (above, below) in list(self.quotients.items()):
            _, divisor = below.split_constant()
            quotient = Dimension(self, {((name, 1),): 1})
            if self._interval(below)[0] >= 1:
                remainder = (combined(above, quotient, -divisor) if below.terms.keys() == {()} else
                             above - below * quotient)
                if is_dimension(remainder):
                    yield remainder
                    yield combined(below - 1, remainder, -1)

    def _interval(self, dimension: Dimension) -> tuple[float, float]:
        """Bounds by the bounds of the symbols alone."""
        low = high = 0.0
        for monomial, coefficient in dimension.terms.items():
            bounds: tuple[float, float] = (coefficient, coefficient)
            for atom, power in monomial:
                for _ in range(power):
                    bounds = _product(bounds, self._atom_interval(atom))
            low, high = low + bounds[0], high + bounds[1]
        return low, high

    def _atom_interval(self, name: str) -> tuple[float, float]:
        extreme = self.extremes.get(name)
        if extreme is not None:
            choose = max if extreme.operation == "max" else min
            return tuple(map(choose, *map(self._interval, extreme[1:])))
        quotient = self.quotients.get(name)
        if quotient is None:
            return self.bounds.get(name, (1, math.inf))
        above, below = map(self._interval, quotient)
        if below[0] <= 0:
            return -math.inf, math.inf
        # Towards zero the divisor is as large as possible, away from zero as small.
        low = _floor_quotient(above[0], below[1] if above[0] >= 0 else below[0])
        return low, _floor_quotient(above[1], below[0] if above[1] >= 0 else below[1])

    def _decide(self, difference: Dimension, relation: str, asked: tuple[Size, str, object]
                ) -> bool:
        low, high = self.lower(difference), -self.lower(-difference)
        if relation == "==":
            return low == high == 0
        if high < 0 or (relation == "<=" and high == 0):
            return True
        if low > 0 or (relation == "<" and low == 0):
            return False
        constant = difference.terms.get((), 0)
        if abs(constant) >= _LARGE:
            # Whether sizes fit into an integer: they do, and calls check that.
            below = constant < 0
            self._add(f"{-difference - 1 if below else difference} >= 0")
            return below
        left, written, right = asked
        raise _inconclusive(
            f"Symbolic dimension comparison '{left}' {written} '{right}' is inconclusive.")

    # --- errors ---
    def needed(self, dimension: Dimension, what: str, where: str) -> Exception:
        text = f"Symbolic dimension '{dimension}' used in a context that requires a constant"
        if what in _WHERE_PYTHON_ASKS:
            return TypeError(f"{text}: {what}{where}")
        return _inconclusive(text, f"It was used for {what}{where}.\n")

    def mixed(self, left: Dimension, right: Dimension) -> Exception:
        return ValueError(
            f"Invalid mixing of symbolic scopes: '{left}' is of the scope {left.scope} and "
            f"'{right}' of the scope {right.scope}. Make both by one call of symbolic_shape, or "
            f"give it the scope.\nSee {_SITE}#user-specified-symbolic-constraints.")


def _replaced(dimension: Dimension, name: str, value: Dimension) -> Size:
    """A dimension with a value for an atom."""
    total: Any = 0
    for monomial, coefficient in dimension.terms.items():
        term: Any = coefficient
        for atom, power in monomial:
            factor = value if atom == name else Dimension(dimension.scope, {((atom, 1),): 1})
            term = term * factor ** power
        total = total + term
    return total


def _product(left: tuple[float, float], right: tuple[float, float]) -> tuple[float, float]:
    corners = [a * b if a and b else 0 for a in left for b in right]
    return min(corners), max(corners)


def _floor_quotient(above: float, below: float) -> float:
    if math.isinf(below):
        return -1 if above < 0 else 0
    return above if math.isinf(above) else above // below


def _inconclusive(message: str, why: str = "") -> InconclusiveDimensionOperation:
    return InconclusiveDimensionOperation(
        f"{message}\n{why}This error arises for comparison operations with shapes that\n"
        "are non-constant, and the result of the operation cannot be represented as\n"
        "a boolean value for all values of the symbolic dimensions involved.\n\n"
        f"Please see {_SITE}#comparison-of-symbolic-dimensions-is-partially-supported\n"
        "for more details.\n")


# --- reading --------------------------------------------------------------------------------------


def symbolic_shape(shape_spec: str | None, *, constraints: Sequence[str] = (),
                   scope: SymbolicScope | None = None,
                   like: Sequence[int | None] | None = None) -> tuple[Any, ...]:
    """A shape with symbols for sizes.

    Args:
      shape_spec: sizes separated by commas: numbers, names of symbols, and sums, products, powers
        (``a^2``), ``floordiv``, ``mod``, ``max`` and ``min`` of these. ``_`` is a size of
        ``like``, ``...`` at the end the rest of them; None is ``"..."``.
      constraints: what holds for the symbols, such as ``"a >= 3"``; they are at least 1 anyway.
      scope: that of the symbols, if they are to be used together with others; then the constraints
        are its own.
      like: a shape that gives sizes which ``shape_spec`` leaves open.

    Raises:
      ValueError: the text cannot be read, or differs from ``like``.

    >>> jax.export.symbolic_shape("2*b + 1, 3")
    (2*b + 1, 3)
    >>> jax.export.symbolic_shape("b, ...", like=(8, 28, 28))
    (b, 28, 28)
    """
    if scope is not None and constraints:
        raise ValueError("Cannot specify both a `scope` and `constraints`.")
    if scope is None:
        scope = SymbolicScope(constraints)
    text = "..." if shape_spec is None else shape_spec
    if not isinstance(text, str):
        raise ValueError(f"symbolic_shape takes a string, got {shape_spec!r}")
    sizes = Parser(text, scope).shape(like)
    for size in sizes:
        if not is_dimension(size) and size is not None and size < 0:
            raise ValueError(f"a size in the symbolic shape {text!r} is negative: {size}")
    return sizes


# --- sizes of symbols -----------------------------------------------------------------------------

def symbols_of(size: Size) -> set[str]:
    """The names of the symbols that a size depends on."""
    if not is_dimension(size):
        return set()
    found: set[str] = set()
    for monomial in size.terms:
        for atom, _ in monomial:
            operands = size.scope.operands(atom)
            found |= {atom} if operands is None else symbols_of(operands[0]) | symbols_of(
                operands[1])
    return found


def scope_of(shapes: Sequence[Sequence[Size]]) -> SymbolicScope | None:
    """The scope of the symbols in shapes.

    Raises:
      ValueError: they have more than one.
    """
    first: Any = None
    for shape in shapes:
        for size in shape:
            if is_dimension(size):
                first = size if first is None else first
                if size.scope is not first.scope:
                    raise size.scope.mixed(first, size)
    return None if first is None else first.scope


def solve(names: Sequence[str], specification: Sequence[Sequence[Size]],
          shapes: Sequence[Sequence[Size]] | None = None) -> dict[str, Any]:
    """The sizes of the symbols in a specification that make it equal to shapes.

    Each symbol must be found from one dimension in which it appears linearly, with known ones.

    Args:
      names: of the arguments, for messages.
      shapes: of the arguments; without them, only whether there is a solution is looked at.

    Raises:
      ValueError: there is no solution, or it is not found this way.
      UnexpectedDimVar: a constraint is about another symbol.
    """
    places = [(f"{name}.shape[{axis}]", size, None if shapes is None else shapes[leaf][axis])
              for leaf, name in enumerate(names) for axis, size in enumerate(specification[leaf])
              if is_dimension(size)]
    solver = _Solver(specification_text(names, specification))
    left = places
    while left:
        later = [place for place in left if not solver.take(*place)]
        if len(later) == len(left):
            break
        left = later
    solver.check_all_found([(place, size) for place, size, _ in left])
    scope: Any = places[0][1].scope if places else None
    if scope is not None:
        solver.check_names(scope)
    if shapes is not None:
        solver.check_sizes(places)
        if scope is not None:
            solver.check_constraints(scope)
    return solver.sizes


def specification_text(names: Sequence[str], specification: Sequence[Sequence[Size]]) -> str:
    """The arguments' shapes with symbols, as messages name them."""
    used = ",".join(f"{name}.shape = {_shape_text(shape)}"
                    for name, shape in zip(names, specification, strict=True)
                    if any(map(is_dimension, shape)))
    return f"Using the following polymorphic shapes specifications: {used}."


def mismatch(what: str, why: str, uses: str, obtained: str) -> str:
    """The message for arguments whose sizes do not fit."""
    return (f"Input shapes do not match the {what}. {why} {uses} Obtained dimension variables: "
            f"{obtained}. Please see {_SITE}#shape-assertion-errors for more details.")


class _Solver:
    """The sizes of symbols as far as they are known.

    Args:
      uses: the specifications, for messages.
    """

    def __init__(self, uses: str) -> None:
        self.uses = uses
        self.obtained = ""
        self.sizes: dict[str, Any] = {}

    def _fail(self, why: str, what: str = "polymorphic shapes specification") -> NoReturn:
        raise ValueError(mismatch(what, why, self.uses, self.obtained))

    def take(self, place: str, size: Dimension, actual: Size | None) -> bool:
        """Finds a symbol from one dimension; False while more than one is unknown there."""
        unknown = symbols_of(size) - set(self.sizes)
        name = next(iter(unknown), "")
        linear = linear_in(size, name, self.sizes) if len(unknown) == 1 else None
        if linear is None:
            return False
        if actual is None:
            self.sizes[name] = symbol_in(size.scope, name)
            return True
        factor, rest = linear
        value = actual - rest if factor == 1 else (actual - rest) // factor
        if factor != 1 and value * factor != actual - rest:
            self._fail(f"Division had remainder {(actual - rest) % factor} when computing the "
                       f"value of '{name}'.")
        self.sizes[name] = value
        self.obtained += (f"'{name}' = {value} from specification '{size}' for dimension {place} "
                          f"(= {actual}), ")
        try:
            is_size = value >= 1
        except InconclusiveDimensionOperation:      # of a caller's sizes, which may be less
            is_size = False
        if not is_size:
            self._fail(f"Expected value >= 1 for dimension variable '{name}'.")
        return True

    def check_all_found(self, left: Sequence[tuple[str, Dimension]]) -> None:
        unsolved = [(place, size) for place, size in left
                    if symbols_of(size) - set(self.sizes)]
        if not unsolved:
            return
        missing = sorted(set().union(*(symbols_of(size) for _, size in unsolved))
                         - set(self.sizes))
        raise ValueError(
            f"Cannot solve for values of dimension variables {{{', '.join(map(repr, missing))}}}. "
            f"We can only solve linear uni-variate constraints. {self.uses} Unprocessed "
            "specifications: "
            + ", ".join(f"'{size}' for dimension size {place}" for place, size in unsolved)
            + f". Please see {_SITE}#dimension-variables-must-be-solvable-from-the-input-shapes "
            "for more details.")

    def check_sizes(self, places: Sequence[tuple[str, Dimension, Size | None]]) -> None:
        for place, size, actual in places:
            if size.value(self.sizes) != actual:
                self._fail(f"Found inconsistency between dimension size {place} (= {actual}) and "
                           f"the specification '{size}' (= {size.value(self.sizes)}).")

    def check_names(self, scope: SymbolicScope) -> None:
        """Raises where a constraint is about symbols that no argument has."""
        for constraint in scope.constraints:
            check_known([constraint.difference], self.sizes)

    def check_constraints(self, scope: SymbolicScope) -> None:
        for constraint in scope.constraints:
            value = constraint.difference.value(self.sizes)
            if not constraint.holds(value):
                relation = "equal" if constraint.is_equality else "greater or equal"
                self._fail(f"Expected '{constraint.difference}' to be {relation} to 0, but found "
                           f"{value}. ", f"symbolic shape constraint {constraint.text}")


def check_known(sizes: Iterable[Size], known: Collection[str]) -> None:
    """Looks at symbols in sizes that a program has.

    Args:
      known: the symbols that the arguments have.

    Raises:
      UnexpectedDimVar: another one is among them.
    """
    for size in sizes:
        for name in sorted(symbols_of(size) - set(known)):
            raise UnexpectedDimVar(
                f"Encountered dimension variable '{name}' that is not appearing in the shapes of "
                "the function arguments.\nThe following dimension variables are appearing in the "
                f"shapes of the function arguments: {sorted(known)}.\nPlease see {_SITE}"
                "#dimension-variables-must-be-solvable-from-the-input-shapes for more details.")


def linear_in(size: Dimension, name: str, sizes: Mapping[str, Size]) -> tuple[Any, Any] | None:
    """(factor, rest) with ``size = factor * name + rest``, or None."""
    with_name = {monomial: value for monomial, value in size.terms.items()
                 if any(symbols_of(Dimension(size.scope, {((atom, 1),): 1})) & {name}
                        for atom, _ in monomial)}
    if any((name, 1) not in monomial for monomial in with_name):
        return None
    factors = {tuple(pair for pair in monomial if pair != (name, 1)): value
               for monomial, value in with_name.items()}
    rest = {monomial: value for monomial, value in size.terms.items() if monomial not in with_name}
    factor = Dimension(size.scope, factors).value(sizes)
    if not is_dimension(factor) and factor == 0:
        return None
    return factor, Dimension(size.scope, rest).value(sizes)


def _shape_text(shape: Sequence[Size]) -> str:
    inside = ", ".join(map(str, shape))
    return f"({inside},)" if len(shape) == 1 else f"({inside})"
