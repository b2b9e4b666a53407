"""Polynomials of symbols with integer coefficients, the terms of symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Monomial = tuple[tuple[str, int], ...]      # names of atoms and their powers, sorted
Terms = Mapping[Monomial, int]


def print_order(monomial: Monomial) -> Any:
    """A key that sorts monomials as JAX prints them, the greatest first."""
    return (len(monomial), sum(power for _, power in monomial),
            [("(" in atom, atom, power) for atom, power in monomial])


def _order(*polynomials: Terms) -> Callable[[Monomial], Any]:
    """A key that sorts monomials: by degree, then by the powers of the symbols, quotients last."""
    names = sorted({atom for terms in polynomials for monomial in terms for atom, _ in monomial},
                   key=lambda name: (name.count("("), name))

    def key(monomial: Monomial) -> Any:
        powers = dict(monomial)
        return sum(powers.values()), [powers.get(name, 0) for name in names]
    return key


def add_terms(left: Terms, right: Terms, sign: int = 1) -> dict[Monomial, int]:
    total = dict(left)
    for monomial, coefficient in right.items():
        total[monomial] = total.get(monomial, 0) + sign * coefficient
    return total


def multiply_monomials(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for atom, power in right:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items()))


def divide_terms(above: Terms, below: Terms) -> tuple[dict[Monomial, int], dict[Monomial, int]]:
    """Polynomial division: ``above = whole * below + rest``."""
    order = _order(above, below)
    leading = max(below, key=order)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    left = {monomial: value for monomial, value in above.items() if value}
    while left:
        monomial = max(left, key=order)
        factor = _ratio(monomial, leading)
        if factor is None or left[monomial] % below[leading]:
            rest[monomial] = left.pop(monomial)
            continue
        coefficient = left[monomial] // below[leading]
        whole[factor] = coefficient
        for other, value in below.items():
            product = multiply_monomials(other, factor)
            left[product] = left.get(product, 0) - coefficient * value
            if not left[product]:
                del left[product]
    return whole, rest


def _ratio(above: Monomial, below: Monomial) -> Monomial | None:
    powers = dict(above)
    for atom, power in below:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return tuple(sorted((atom, power) for atom, power in powers.items() if power))
