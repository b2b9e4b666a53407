"""Code of loops over few elements computes the same when copies, and what nobody reads, are gone.

Random bodies of loops, as they are made from jaxprs: values in registers that are written once,
loops and choices in them, and copies at the end that bring results to where the next iteration
reads them. An interpreter of the few instructions runs them before and after.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping

import numpy as np
import pytest

from maxjax._max.mojo.loop_copies import without_copies, without_unread
from maxjax._max.mojo.scalar_code import (
    Choice,
    Instruction,
    Item,
    Register,
    Repeat,
    every_instruction,
)

INT64, INT32 = np.dtype(np.int64), np.dtype(np.int32)
Memory = dict[int, np.ndarray]      # by the numbers of whole registers

OPERATIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def elements_of(register: Register, memory: Memory) -> np.ndarray:
    whole = memory[register.root.number]
    return whole if register.whole is None else whole[register.number:register.number + 1]


def run(items: list[Item], memory: Memory) -> None:
    for item in items:
        if isinstance(item, Repeat):
            for _ in range(item.times):
                run(item.body, memory)
        elif isinstance(item, Choice):
            index = int(elements_of(item.index, memory)[0]) % 2
            run(item.branches[index], memory)
        else:
            run_one(item, memory)


def run_one(x: Instruction, memory: Memory) -> None:
    assert x.target is not None
    target = elements_of(x.target, memory)
    sources = [elements_of(source, memory) for source in x.sources]
    if x.opcode == "apply":
        # Element by element, as the machine does: also where a source is the target.
        for k in range(len(target)):
            target[k] = OPERATIONS[x.name](sources[0][k], sources[1][k])
    elif x.opcode == "spread":
        target[...] = sources[0][x.numbers[0]]
    else:
        to, step, source, source_step = x.numbers
        for k in range(x.elements):
            target[to + k * step] = sources[0][source + k * source_step]


class Bodies:
    """Makes a loop's body, and counts its registers."""

    def __init__(self, seed: int):
        self.draw = random.Random(seed)
        self.registers: list[Register] = []
        self.block: list[Item] = []

    def new(self, elements: int) -> Register:
        register = Register(len(self.registers), elements, INT64, 64 * len(self.registers))
        self.registers.append(register)
        return register

    def one_of(self, known: list[Register], elements: int, last: int = 0) -> Register:
        """One of the registers of so many elements, or of the last of them."""
        return self.draw.choice([x for x in known if x.elements == elements][-last:])

    def copy(self, target: Register, source: Register) -> None:
        self.block.append(Instruction("move", target, (source,), elements=target.elements,
                                      numbers=(0, 1, 0, 1)))

    def values(self, known: list[Register], count: int, depth: int) -> list[Register]:
        """What can be read behind some random items that read what is known."""
        known = [*known]
        for _ in range(count):
            elements = self.draw.choice((1, 3))
            like = [x for x in known if x.elements == elements]
            kind = self.draw.random()
            if kind < 0.2 and depth:
                known += self.loop(known, depth - 1)
            elif kind < 0.35 and depth:
                known.append(self.choice(known, depth - 1))
            elif kind < 0.45 and any(x.elements == 3 for x in known):
                source = self.draw.choice([x for x in known if x.elements == 3])
                target = self.new(3)
                numbers = self.draw.choice(((0, 1, 0, 1), (2, -1, 0, 1), (0, 1, 1, 0)))
                self.block.append(Instruction("move", target, (source,), elements=3,
                                              numbers=numbers))
                known.append(target)
            elif kind < 0.55 and any(x.elements == 1 for x in known):
                source = self.draw.choice([x for x in known if x.elements == 1])
                self.block.append(Instruction("spread", target := self.new(3), (source,),
                                              elements=3, numbers=(0,)))
                known.append(target)
            elif len(like) > 1:
                known.append(self.apply(like, elements))
        return known

    def apply(self, like: list[Register], elements: int) -> Register:
        target = self.new(elements)
        sources = self.draw.choice(like), self.draw.choice(like)
        name = self.draw.choice([*OPERATIONS])
        if elements == 3 and self.draw.random() < 0.3:      # by an instruction for each element
            for k in range(3):
                one, *given = (Register(k, 1, INT64, x.offset + 8 * k, whole=x)
                               for x in (target, *sources))
                self.block.append(Instruction("apply", one, tuple(given), "f", 1, name=name))
        else:
            self.block.append(Instruction("apply", target, sources, "f", elements, name=name))
        return target

    def loop(self, known: list[Register], depth: int) -> list[Register]:
        carries = [self.new(x.elements) for x in self.draw.choices(known, k=2)]
        for carry in carries:
            self.copy(carry, self.one_of(known, carry.elements))
        outer, self.block = self.block, []
        found = self.values([*known, *carries], 4, depth)
        self.carry(carries, [self.one_of(found, carry.elements, last=4) for carry in carries])
        without_copies(self.block, carries)
        outer.append(Repeat(self.block, self.draw.choice((1, 2, 3))))
        self.block = outer
        return carries

    def choice(self, known: list[Register], depth: int) -> Register:
        result = self.new(1)
        index = Register(len(self.registers), 1, INT32, 0)
        self.registers.append(index)
        self.block.append(Instruction("move", index, (known[0],), elements=1,
                                      numbers=(0, 1, 0, 1)))
        outer, choice = self.block, Choice(index, [])
        for _ in range(2):
            self.block = []
            found = self.values(known, 3, depth)
            self.copy(result, self.one_of(found, 1))
            without_copies(self.block, [result])
            choice.branches.append(self.block)
        outer.append(choice)
        self.block = outer
        return result

    def carry(self, carries: list[Register], results: list[Register]) -> None:
        """As `small_loops.py`: a result that is a carry itself is put aside first."""
        aside: dict[Register, Register] = {}
        pairs = [pair for pair in zip(carries, results, strict=True) if pair[0] is not pair[1]]
        for _, result in pairs:
            if result in [carry for carry, _ in pairs] and result not in aside:
                aside[result] = self.new(result.elements)
                self.copy(aside[result], result)
        for carry, result in pairs:
            self.copy(carry, aside.get(result, result))


def made(seed: int) -> tuple[Bodies, list[Register], list[Item]]:
    """A body and its carries; loops and choices in it are rid of copies already, it is not."""
    bodies = Bodies(seed)
    carries = [bodies.new(elements) for elements in (1, 1, 3, 3)]
    found = bodies.values(carries, 8, 2)
    # Mostly what was computed last.
    bodies.carry(carries, [bodies.one_of(found, carry.elements, last=4) for carry in carries])
    return bodies, carries, bodies.block


def memory_for(bodies: Bodies, seed: int, garbage: int) -> Memory:
    """Carries have values; what has not been written must not matter."""
    numbers = np.random.default_rng(seed)
    return {x.number: (numbers.integers(-9, 9, x.elements) if x.number < 4
                       else np.full(x.elements, garbage)).astype(np.int64)
            for x in bodies.registers}


def after(items: list[Item], bodies: Bodies, seed: int, garbage: int) -> Mapping[int, list[int]]:
    """The carries after each of three iterations, one after the other."""
    memory, found = memory_for(bodies, seed, garbage), {}
    for iteration in range(3):
        run(items, memory)
        found[iteration] = [int(x) for number in range(4) for x in memory[number]]
    return found


@pytest.mark.parametrize("seeds", [range(n, n + 100) for n in range(0, 400, 100)],
                         ids=lambda seeds: f"from {seeds[0]}")
def test_a_body_without_copies_computes_the_same(seeds):
    removed = 0
    for seed in seeds:
        bodies, carries, block = made(seed)
        expected = after(block, bodies, seed, 5)
        before = sum(x.opcode == "move" for x in every_instruction(block))
        without_copies(block, carries)
        removed += before - sum(x.opcode == "move" for x in every_instruction(block))
        assert after(block, bodies, seed, -777) == expected, seed
    assert removed > 40, "the bodies have too few copies that can go"


@pytest.mark.parametrize("seeds", [range(n, n + 100) for n in range(0, 200, 100)],
                         ids=lambda seeds: f"from {seeds[0]}")
def test_what_nobody_reads_can_go(seeds):
    removed = 0
    for seed in seeds:
        bodies, carries, block = made(seed)
        expected = after(block, bodies, seed, 5)
        # Something behind the loop reads the carries.
        ends = [Instruction("put", x, (x,)) for x in carries]
        items: list[Item] = [*copy.copy(block), *ends]
        without_unread(items)
        removed += len([*every_instruction(block)]) - len([*every_instruction(items)]) + len(ends)
        assert after([x for x in items if x not in ends], bodies, seed, -777) == expected, seed
    assert removed > 100, "the bodies have too little that nobody reads"
