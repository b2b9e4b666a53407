"""Removes copies from a body of code for the scalar machine: values are computed where they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from maxjax._max.mojo.scalar_code import (
    Choice,
    Instruction,
    Item,
    Register,
    Repeat,
    every_instruction,
    every_source,
)


def without_copies(block: list[Item], kept: Collection[Register]) -> None:
    """Has a value computed where it would be copied to, if what is there is not needed any more.

    Args:
      kept: registers that are read behind the block, or when it runs again.
    """
    # What is copied twice has one copy less, and then perhaps none.
    for _ in range(_MOST_PASSES):
        if not _Copies(block, kept).remove():
            break
    # What is one of them for all, and is not read as a whole.
    read = {x.root for x in every_source(block)}
    block[:] = [x for x in block if not isinstance(x, Instruction) or x.opcode != "spread"
                or x.target in read]


_MOST_PASSES = 3
# The beginnings and steps, of the target and of the source, of a move that changes no order.
_IN_ORDER = (0, 1, 0, 1)

# What does nothing but write a register, which it does not read.
_ONLY_WRITING = frozenset((
    "apply", "spread", "move", "load", "read", "point", "aim", "assign"))


def without_unread(items: list[Item]) -> None:
    """Removes what computes registers that nothing reads."""
    read = Counter(x.root for x in every_source(items))
    read.update(x.target.root for x in every_instruction(items)
                if x.opcode == "put" and x.target is not None)
    while _remove(items, read):
        pass


def _remove(items: list[Item], read: Counter[Register]) -> bool:
    """Once through items, the last ones first: so what only they need goes as well."""
    kept: list[Item] = []
    changed = False
    for item in reversed(items):
        if isinstance(item, Repeat):
            changed |= _remove(item.body, read) | _remove(item.condition, read)
        elif isinstance(item, Choice):
            for branch in item.branches:
                changed |= _remove(branch, read)
        elif item.opcode in _ONLY_WRITING and item.target is not None \
                and not read[item.target.root]:
            read.subtract(x.root for x in item.sources)
            changed = True
            continue
        kept.append(item)
    items[:] = kept[::-1]
    return changed


@dataclass(eq=False, slots=True)
class _Entry:
    """An item of a block: when it runs, what it reads and writes."""

    order: tuple[int, int]
    item: Item
    reads: set[Register]
    writes: set[Register]


class _Copies:
    """The copies of a block, and who reads and writes which register, by whole ones."""

    def __init__(self, block: list[Item], kept: Collection[Register]):
        self.block = block
        self.readers: dict[Register, list[_Entry]] = {}
        self.writers: dict[Register, list[_Entry]] = {}
        self.aimed = {x.sources[0].root for x in every_instruction(block) if x.opcode == "aim"}
        # Where these are read, they are known to be.
        self.reached = {x.sources[2].root for x in every_instruction(block)
                        if x.opcode == "read" and len(x.sources) > 2}
        self.entries: list[_Entry] = []
        self.copies: list[_Entry] = []
        self.names: dict[Register, Register] = {}
        for number, item in enumerate(block):
            written = {x for instruction in every_instruction([item])
                       for x in instruction.written}
            entry = _Entry((number, 0), item, {*every_source([item])}, written)
            self.entries.append(entry)
            for registers, found in ((entry.reads, self.readers), (written, self.writers)):
                for root in {x.root for x in registers}:
                    found.setdefault(root, []).append(entry)
            if isinstance(item, Instruction) and item.opcode == "move":
                self.copies.append(entry)
        self.kept = {x.root for x in (*kept, *(x for copy in self.copies for x in copy.writes))}

    def remove(self) -> bool:
        """Returns whether there was one."""
        removed = {copy for number, copy in enumerate(self.copies, 1)
                   if self.is_removed(copy, number)}
        if removed:
            self.entries = [entry for entry in self.entries if entry not in removed]
            self.entries.sort(key=lambda entry: entry.order)
            self.block[:] = [_renamed(entry.item, self.names) for entry in self.entries]
        return bool(removed)

    def is_removed(self, copy: _Entry, number: int) -> bool:
        assert isinstance(copy.item, Instruction)
        target, (source,) = copy.item.target, copy.item.sources
        if target is None or not target.elements == source.elements == copy.item.elements \
                or copy.item.numbers != _IN_ORDER or target.dtype != source.dtype \
                or source.root in self.kept or source.root in self.reached \
                or {target.root, source.root} & self.aimed:
            return False
        made = [x for x in self.writers.get(source.root, ())
                if any(written.overlaps(source) for written in x.writes)]
        if len(made) != 1 or not isinstance(made[0].item, Instruction) \
                or not _may_write(made[0].item, source, target) or made[0].order > copy.order:
            return False
        first, users = made[0], self.readers[source.root]
        if any(x is not source and x.overlaps(source) for user in users for x in user.reads) \
                or any(x is not copy and x.order > first.order
                       and any(written.overlaps(target) for written in x.writes)
                       for x in self.writers[target.root]):
            return False
        # It is computed after all that read what it overwrites.
        last = max((x.order for x in self.readers.get(target.root, ())
                    if first.order < x.order < copy.order
                    and any(read.overlaps(target) for read in x.reads)), default=first.order)
        # Behind whatever else comes there.
        then = (last[0], number) if last > first.order else first.order
        if any(first.order < user.order < then and source in user.reads for user in users) or any(
                first.order < x.order < then and any(y.overlaps(read) for y in x.writes)
                for read in first.reads for x in self.writers.get(read.root, ())):
            return False
        first.order = then
        self.names[source] = target
        first.writes = {target}
        self.writers[target.root] = [
            first, *(x for x in self.writers[target.root] if x is not copy)]
        for user in users:
            if user is not copy and source in user.reads:
                user.reads = user.reads - {source} | {target}
                self.readers.setdefault(target.root, []).append(user)
        return True


def _may_write(x: Instruction, source: Register, target: Register) -> bool:
    """Whether what computes a register, and no other, may compute another in its place: also one
    that it reads, element by element or, where an array has a row written, if that is the array."""
    if x.opcode == "apply":
        return x.target is source
    if x.opcode == "assign":
        return x.target is source and target not in x.sources[1:]
    return bool(x.assigned) and x.results == (source,) and target not in x.sources[1:]


def _renamed(item: Item, names: Mapping[Register, Register]) -> Item:
    """The item with other registers in the place of some."""
    if isinstance(item, Repeat):
        item.body = [_renamed(x, names) for x in item.body]
        item.condition = [_renamed(x, names) for x in item.condition]
        if item.predicate is not None:
            item.predicate = names.get(item.predicate, item.predicate)
        return item
    if isinstance(item, Choice):
        item.branches = [[_renamed(x, names) for x in branch] for branch in item.branches]
        item.index = names.get(item.index, item.index)
        return item
    target = None if item.target is None else names.get(item.target, item.target)
    return item._replace(target=target, sources=tuple([names.get(x, x) for x in item.sources]),
                         results=tuple([names.get(x, x) for x in item.results]))
