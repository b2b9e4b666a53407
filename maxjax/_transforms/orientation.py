"""Products of matrices come out the way round in which their values are used.

The product of (M, K) and (K, N) matrices is the transpose of a product with its operands swapped,
and an elementwise operation of transposes is the transpose of the operation. Under vmap a matrix
that is not mapped times a vector that is makes a (rows, batch) matrix; what follows wants (batch,
rows), and each value on the way would be transposed by itself:

    c:f32[1000,64] = dot_general a b         c:f32[64,1000] = dot_general b a
    d:f32[1000,64] = exp c                   d:f32[64,1000] = exp c
    e:f32[64,1000] = transpose d
    f:f32[64,1000] = transpose c
    g:f32[64,1000] = sub e f                 g:f32[64,1000] = sub d c
"""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from maxjax._ir.types import ShapedArray
from maxjax._primitives.broadcasting import reduce_sum_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.layout import reshape_p, transpose_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.rules import elementwise_factors

_TURN = (1, 0)
# They read a matrix either way round.
_REDUCTIONS = (reduce_sum_p, reduce_max_p, reduce_min_p)


def orient_products(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Turns products, and the elementwise operations that depend on nothing else, where that
    removes more bytes of transposes than it adds."""
    jaxpr = closed.jaxpr
    if not any(_is_turn(eqn) for eqn in jaxpr.eqns):
        return closed
    groups = _Groups()
    for eqn in jaxpr.eqns:
        groups.take(eqn)
    for eqn in jaxpr.eqns:
        groups.count(eqn)
    for atom in jaxpr.outvars:
        if isinstance(atom, Var):
            groups.count_plain(atom)
    turned = groups.worth_turning()
    if not turned:
        return closed
    rewriter = _Rewriter(turned)
    for eqn in jaxpr.eqns:
        rewriter.rewrite(eqn)
    outvars = [rewriter.plain(atom) for atom in jaxpr.outvars]
    return closed.replace(eqns=rewriter.eqns, outvars=outvars)


class _Groups:
    """Matrices that can only be turned together, and the bytes of transposes that this is worth."""

    def __init__(self) -> None:
        self._parent: dict[Atom, Atom] = {}
        self._gains: dict[Atom, int] = {}
        self._plain: dict[Atom, None] = {}

    def _root(self, atom: Atom) -> Atom:
        parent = self._parent
        while parent[atom] is not atom:
            parent[atom] = atom = parent[parent[atom]]
        return atom

    def take(self, eqn: JaxprEqn) -> None:
        """Puts an equation's result into a group, if it can be turned."""
        if len(eqn.outvars) != 1 or not _is_matrix(eqn.outvars[0].aval):
            return
        out = eqn.outvars[0]
        if eqn.primitive is dot_general_p:
            (left, _), (batch, _) = eqn.params["dimension_numbers"]
            # One dimension of the result must come from either operand.
            if not batch and eqn.invars[0].aval.ndim - len(left) == 1:
                self._parent[out] = out
        elif eqn.primitive.factors is elementwise_factors:
            members = [atom for atom in eqn.invars if atom in self._parent]
            if members and all(
                    atom.aval.shape == out.aval.shape if atom in self._parent
                    else _is_cheap_to_turn(atom.aval) for atom in eqn.invars):
                self._parent[out] = root = self._root(members[0])
                for atom in members[1:]:
                    self._parent[self._root(atom)] = root

    def count(self, eqn: JaxprEqn) -> None:
        """Counts what an equation gains or loses if its operands are turned."""
        if any(var in self._parent for var in eqn.outvars) and eqn.primitive is not dot_general_p:
            return
        for atom in eqn.invars:
            if atom in self._parent:
                if _is_turn(eqn):
                    root = self._root(atom)
                    self._gains[root] = self._gains.get(root, 0) + atom.aval.nbytes
                elif not _reads_either_way(eqn):
                    self.count_plain(atom)

    def count_plain(self, atom: Atom) -> None:
        """Something needs this matrix as it is: once turned, it would be turned back, once."""
        if atom in self._parent:
            self._plain[atom] = None

    def worth_turning(self) -> set[Atom]:
        gains = dict(self._gains)
        for atom in self._plain:
            root = self._root(atom)
            gains[root] = gains.get(root, 0) - atom.aval.nbytes
        return {atom for atom in self._parent if gains.get(self._root(atom), 0) > 0}


class _Rewriter:
    """Writes equations anew, some matrices turned.

    Attributes:
      eqns: the new ones.
    """

    def __init__(self, matrices: set[Atom]):
        self.eqns: list[JaxprEqn] = []
        self._matrices = matrices
        self._turned: dict[Atom, Var] = {}      # by what they are the transposes of
        self._plain: dict[Atom, Atom] = {}      # transposes, and matrices turned back

    def plain(self, atom: Atom) -> Atom:
        """A variable of the old equations, as it was."""
        known = self._plain.get(atom)
        if known is None and atom in self._turned:
            known = self._plain[atom] = Var(atom.aval)
            self.eqns.append(JaxprEqn(
                transpose_p, [self._turned[atom]], {"permutation": _TURN}, [known]))
        return atom if known is None else known

    def rewrite(self, eqn: JaxprEqn) -> None:
        read = [atom in self._turned for atom in eqn.invars]
        if _is_turn(eqn) and read[0]:
            self._plain[eqn.outvars[0]] = self._turned[eqn.invars[0]]
            return
        params, outvars = eqn.params, eqn.outvars
        makes = len(outvars) == 1 and outvars[0] in self._matrices
        if eqn.primitive is dot_general_p and (makes or _reads_either_way(eqn) and any(read)):
            invars = [self._turned.get(atom) or self.plain(atom) for atom in eqn.invars]
            contracted, batch = params["dimension_numbers"]
            contracted = tuple(
                tuple(1 - dim for dim in dims) if turned else dims
                for dims, turned in zip(contracted, read, strict=True))
            precision = params["precision"]
            if makes:
                invars, contracted = invars[::-1], contracted[::-1]
                precision = precision[::-1] if type(precision) is tuple else precision
            params = {**params, "dimension_numbers": (contracted, batch), "precision": precision}
        elif makes:
            invars = [self._turned.get(atom) or self._reshaped(atom) for atom in eqn.invars]
        elif eqn.primitive in _REDUCTIONS and any(read):
            invars = [self._turned[atom] for atom in eqn.invars]
            params = {**params, "axes": tuple(sorted(1 - axis for axis in params["axes"]))}
        else:
            invars = [self.plain(atom) for atom in eqn.invars]
        if makes:
            aval = outvars[0].aval
            outvars = [Var(aval.update(shape=aval.shape[::-1]))]
            self._turned[eqn.outvars[0]] = outvars[0]
        self.eqns.append(JaxprEqn(eqn.primitive, invars, params, outvars, eqn.source))

    def _reshaped(self, atom: Atom) -> Atom:
        """A row as a column, or the other way round; a scalar as it is."""
        atom, shape = self.plain(atom), atom.aval.shape
        if not shape:
            return atom
        result = Var(atom.aval.update(shape=shape[::-1]))
        self.eqns.append(JaxprEqn(
            reshape_p, [atom], {"new_sizes": shape[::-1], "dimensions": None}, [result]))
        return result


def _is_turn(eqn: JaxprEqn) -> bool:
    return eqn.primitive is transpose_p and tuple(eqn.params["permutation"]) == _TURN


def _is_matrix(aval: ShapedArray) -> bool:
    return aval.ndim == 2 and aval.plain


def _is_cheap_to_turn(aval: ShapedArray) -> bool:
    return aval.plain and (not aval.shape or aval.ndim == 2 and 1 in aval.shape)


def _reads_either_way(eqn: JaxprEqn) -> bool:
    """Whether an equation can as well read the transposes of its operands that are matrices."""
    if eqn.primitive is dot_general_p:
        batch: Sequence[int] = eqn.params["dimension_numbers"][1][0]
        # With both dimensions contracted, their order is that of the other operand's.
        return not batch and all(len(dims) == 1 for dims in eqn.params["dimension_numbers"][0])
    return eqn.primitive in _REDUCTIONS and eqn.outvars[0].aval.plain
