"""Random programs with control flow and inner transformations, as Python source.

``source(seed)`` is the text of ``program(j, x, y, n)``, to be run with ``j`` either library: ``x``
and ``y`` are float arrays, ``n`` an int32 scalar; results are a tuple of arrays. Everything drawn
is smooth and bounded, so that the libraries can differ only by rounding. About two thirds of the
programs can be differentiated in reverse mode; in the others loops have no static length.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]
SHAPES: list[Shape] = [(), (), (3,), (3,), (2,), (2, 3), (3, 2), (1, 3), (4,)]
STEP = "    "


class Variable(NamedTuple):
    name: str
    shape: Shape
    is_float: bool = True


FLOAT_UNARY = [
    "jnp.sin({})", "jnp.cos({})", "jnp.tanh({})", "-{}", "{} * 0.5 + 0.125", "1 - 2 * {}",
    "jnp.exp(-{0} * {0})", "{0} / (1 + {0} * {0})", "jnp.sqrt({0} * {0} + 1)", "j.lax.logistic({})",
    "jnp.log1p({0} * {0})", "jnp.tanh({}) ** 2", "jnp.maximum({}, 0.3712)", "j.nn.relu({} + 0.1)",
    "jnp.arctan({})", "j.lax.stop_gradient({})", "jnp.abs({} - 0.7)",
]
FLOAT_BINARY = [
    "{} + {}", "{} - {}", "{} * jnp.tanh({})", "jnp.where({0} > 0.3712, {0}, {1})",
    "jnp.maximum({}, {} + 0.3712)", "jnp.arctan2({0}, {1} * {1} + 1)", "jnp.tanh({}) * jnp.sin({})",
]
INTEGER_UNARY = ["{} + 1", "{} * 3 % 7", "{} // 2", "{} % 3", "{} ^ 5", "jnp.maximum({}, 1)"]
INTEGER_BINARY = ["({} + {}) % 11", "{} - {}", "jnp.minimum({}, {})", "{} & {}",
                  "jnp.where({0} > {1}, {0}, 2)"]
ALONG_AXIS = [
    "jnp.cumsum({}, {axis}) * 0.5", "jnp.flip({}, {axis})", "jnp.roll({}, 1, {axis})",
    "jnp.sort({}, {axis})", "j.nn.softmax({}, {axis})", "jnp.take({}, np.array({taken}), {axis})",
    "{} - jnp.mean({}, {axis}, keepdims=True)",
]
DROPS_AXIS = ["jnp.sum({}, {axis})", "jnp.mean({}, {axis})", "jnp.max({}, {axis})",
              "j.nn.logsumexp({}, {axis})", "jnp.prod(jnp.tanh({}) + 1.1, {axis})"]


class Writer:
    """Draws a program and writes it line by line."""

    def __init__(self, seed: int, structures: int | None = None):
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.reverse = self.draw.random() < 0.7     # only what reverse mode can do
        # How many loops, branches and transformations.
        self.budget = structures or self.draw.randint(6, 14)

    # --- names and lines ---
    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def line(self, depth: int, text: str) -> None:
        self.lines.append(STEP * depth + text)

    def chance(self, probability: float) -> bool:
        return self.draw.random() < probability

    def assign(self, depth: int, known: list[Variable], text: str, shape: Shape,
               is_float: bool = True) -> Variable:
        variable = Variable(self.fresh("v" if is_float else "i"), shape, is_float)
        self.line(depth, f"{variable.name} = {text}")
        known.append(variable)
        return variable

    def recent(self, options: list[Variable]) -> Variable:
        return options[max(self.draw.randrange(len(options)) for _ in range(2))]

    def value(self, known: list[Variable], shape: Shape | None = None,
              is_float: bool = True) -> Variable | str:
        """A variable or expression of this shape."""
        options = [v for v in known if v.is_float == is_float]
        fitting = [v for v in options if shape is None or v.shape == shape]
        if fitting and (shape is None or self.chance(0.9)):
            return self.recent(fitting)
        chosen = self.recent(options)
        if shape == ():
            return f"jnp.sum({chosen.name})" + (" * 0.5" if is_float else " % 5")
        if chosen.shape == ():
            return f"jnp.broadcast_to({chosen.name}, {shape})"
        return f"jnp.resize({chosen.name}, {shape})"

    def text(self, known: list[Variable], shape: Shape | None = None,
             is_float: bool = True) -> str:
        value = self.value(known, shape, is_float)
        return value.name if isinstance(value, Variable) else f"({value})"

    def shape(self) -> Shape:
        return self.draw.choice(SHAPES)

    # --- statements ---
    def block(self, depth: int, known: list[Variable], count: int, level: int) -> None:
        for _ in range(count):
            self.statement(depth, known, level)

    def statement(self, depth: int, known: list[Variable], level: int) -> None:
        if level < 3 and self.budget > 0 and self.chance(0.45):
            self.budget -= 1
            self.draw.choice(self.structures())(depth, known, level)
        else:
            self.operation(depth, known)

    def structures(self) -> list[Callable[..., None]]:
        common = [self.scan, self.scan, self.scan, self.cond, self.cond, self.switch, self.fori,
                  self.map, self.transformed, self.transformed, self.custom, self.vmapped,
                  self.derivative]
        return common if self.reverse else [
            *common, self.while_loop, self.while_loop, self.while_loop]

    def operation(self, depth: int, known: list[Variable]) -> None:
        draw = self.draw
        kind = draw.choice(["unary"] * 4 + ["binary"] * 3 + ["axis", "drop", "integer", "integer",
                                                          "to float", "to integer", "index",
                                                          "update", "dot", "reshape"])
        if kind == "integer":
            value = self.recent([v for v in known if not v.is_float])
            if self.chance(0.5):
                text = draw.choice(INTEGER_UNARY).format(value.name)
            else:
                text = draw.choice(INTEGER_BINARY).format(
                    value.name, self.text(known, value.shape, False))
            self.assign(depth, known, text, value.shape, False)
            return
        if kind == "to float":
            value = self.recent([v for v in known if not v.is_float])
            self.assign(depth, known, f"({value.name} % 7).astype(x.dtype) * 0.25", value.shape)
            return
        value = self.recent([v for v in known if v.is_float])
        name, shape = value.name, value.shape
        if kind == "to integer":
            self.assign(depth, known, f"({name} > 0.3712).astype('int32')", shape, False)
        elif kind == "binary":
            other = self.text(known, shape if self.chance(0.7) else draw.choice(((), shape)))
            self.assign(depth, known, draw.choice(FLOAT_BINARY).format(name, other), shape)
        elif kind == "dot" and len(shape) == 2:
            rows, columns = shape
            other = self.text(known, (columns, rows))
            self.assign(depth, known, f"jnp.tanh({name} @ {other}) * 0.5", (rows, rows))
        elif kind == "dot" and len(shape) == 1:
            other = self.text(known, shape)
            self.assign(depth, known, f"jnp.dot({name}, {other})", ())
        elif kind == "reshape" and len(shape) == 2:
            text, new = draw.choice([("{}.T", shape[::-1]), ("{}.reshape(-1)",
                                                           (shape[0] * shape[1],))])
            self.assign(depth, known, text.format(name), new)
        elif kind == "axis" and shape:
            axis = draw.randrange(len(shape))
            taken = [draw.randrange(shape[axis]) for _ in range(shape[axis])]
            self.assign(depth, known, draw.choice(ALONG_AXIS).format(
                name, name, axis=axis, taken=taken), shape)
        elif kind == "drop" and shape:
            axis = draw.randrange(len(shape))
            self.assign(depth, known, draw.choice(DROPS_AXIS).format(name, axis=axis),
                        (*shape[:axis], *shape[axis + 1:]))
        elif kind == "index" and shape:
            index = self.text(known, (), False)
            self.assign(depth, known, f"{name}[{index} % {shape[0]}]", shape[1:])
        elif kind == "update" and shape:
            index = self.text(known, (), False)
            update = self.text(known, shape[1:])
            method = draw.choice(["add", "set", "multiply"])
            self.assign(depth, known,
                        f"{name}.at[{index} % {shape[0]}].{method}(jnp.tanh({update}))", shape)
        else:
            self.assign(depth, known, draw.choice(FLOAT_UNARY).format(name), shape)

    # --- bodies ---
    def body(self, depth: int, known: list[Variable], level: int,
             parameters: list[Variable]) -> list[Variable]:
        """The lines of a function, which sees the enclosing variables; its variables at the end."""
        outer = known if self.chance(0.8) else []
        inner = [*outer, *parameters]
        if not any(v.is_float for v in inner) or not any(not v.is_float for v in inner):
            inner = [*known, *parameters]
        inner = list(inner)
        # The parameters come last, so that they are used most.
        self.block(depth, inner, self.draw.randint(1, 3), level + 1)
        return inner

    def carries(self, known: list[Variable]) -> tuple[list[Variable], list[str]]:
        """Parameters of a loop's body and the expressions of their first values."""
        parameters, starts = [], []
        for _ in range(self.draw.choice((1, 1, 2, 3))):
            is_float = not parameters or self.chance(0.7)
            shape = self.shape() if is_float else ()
            parameters.append(Variable(self.fresh("c"), shape, is_float))
            starts.append(self.text(known, shape, is_float))
        return parameters, starts

    def next_carry(self, inner: list[Variable], parameters: list[Variable]) -> str:
        results = []
        for parameter in parameters:
            text = self.text(inner, parameter.shape, parameter.is_float)
            dtype = "x.dtype" if parameter.is_float else "'int32'"
            # Bounded, and of the carry's type.
            text = f"jnp.tanh({text})" if parameter.is_float else f"{text} % 13"
            results.append(f"({text}).astype({dtype})")
        return packed(results)

    def start(self, starts: list[str], parameters: list[Variable]) -> str:
        return packed([f"jnp.asarray({text}, {'x.dtype' if p.is_float else 'np.int32'})"
                       for text, p in zip(starts, parameters, strict=True)])

    def scan(self, depth: int, known: list[Variable], level: int) -> None:
        parameters, starts = self.carries(known)
        sources = [v for v in known if v.shape]
        element: Variable | None = None
        length = self.draw.choice((0, 1, 2, 3, 3, 4))
        xs = "None"
        if sources and self.chance(0.7):
            source = self.recent(sources)
            element = Variable(self.fresh("e"), source.shape[1:], source.is_float)
            xs, length = source.name, source.shape[0]
        function, carry = self.fresh("f"), self.fresh("c")
        self.line(depth, f"def {function}({carry}, {element.name if element else '_'}):")
        self.line(depth + 1, f"{packed([p.name for p in parameters])} = {carry}")
        inner = self.body(depth + 1, known, level,
                          [*parameters, *([element] if element else [])])
        output = self.value(inner)
        out = output if isinstance(output, Variable) else self.assign(
            depth + 1, inner, str(output), ())
        self.line(depth + 1, f"return {self.next_carry(inner, parameters)}, {out.name}")
        options = "".join([
            f", length={length}" if xs == "None" else "",
            ", reverse=True" if self.chance(0.3) else "",
            f", unroll={self.draw.choice((1, 2, 'True'))}" if self.chance(0.2) else ""])
        final, outputs = self.fresh("r"), self.fresh("v")
        self.line(depth, f"{final}, {outputs} = j.lax.scan({function}, "
                         f"{self.start(starts, parameters)}, {xs}{options})")
        self.unpack(depth, known, final, parameters)
        if length:
            known.append(Variable(outputs, (length, *out.shape)))

    def unpack(self, depth: int, known: list[Variable], name: str,
               parameters: list[Variable]) -> None:
        results = [Variable(self.fresh("v" if p.is_float else "i"), p.shape, p.is_float)
                   for p in parameters]
        self.line(depth, f"{packed([r.name for r in results])} = {name}")
        known += results

    def fori(self, depth: int, known: list[Variable], level: int) -> None:
        parameters, starts = self.carries(known)
        function, index, carry = self.fresh("f"), self.fresh("i"), self.fresh("c")
        self.line(depth, f"def {function}({index}, {carry}):")
        self.line(depth + 1, f"{packed([p.name for p in parameters])} = {carry}")
        inner = self.body(depth + 1, known, level, [*parameters, Variable(index, (), False)])
        self.line(depth + 1, f"return {self.next_carry(inner, parameters)}")
        bound = str(self.draw.choice((1, 2, 3)))
        if not self.reverse and self.chance(0.5):
            bound = f"{self.text(known, (), False)} % 4"
        final = self.fresh("r")
        self.line(depth, f"{final} = j.lax.fori_loop({self.draw.choice((0, 1))}, {bound}, "
                         f"{function}, {self.start(starts, parameters)})")
        self.unpack(depth, known, final, parameters)

    def while_loop(self, depth: int, known: list[Variable], level: int) -> None:
        parameters, starts = self.carries(known)
        counter = Variable(self.fresh("k"), (), False)
        test, function, carry = self.fresh("f"), self.fresh("f"), self.fresh("c")
        limit = f"{self.text(known, (), False)} % 4" if self.chance(0.5) else str(
            self.draw.choice((0, 1, 3)))
        self.line(depth, f"def {test}({carry}):")
        self.line(depth + 1, f"{counter.name}, {packed([p.name for p in parameters])} = {carry}")
        more = (f" & (jnp.sum({parameters[0].name}) < 1.7)"
                if parameters[0].is_float and self.chance(0.4) else "")
        self.line(depth + 1, f"return ({counter.name} < {limit}){more}")
        self.line(depth, f"def {function}({carry}):")
        self.line(depth + 1, f"{counter.name}, {packed([p.name for p in parameters])} = {carry}")
        inner = self.body(depth + 1, known, level, [counter, *parameters])
        self.line(depth + 1, f"return {counter.name} + 1, {self.next_carry(inner, parameters)}")
        final = self.fresh("r")
        self.line(depth, f"_, {final} = j.lax.while_loop({test}, {function}, "
                         f"(jnp.int32(0), {self.start(starts, parameters)}))")
        self.unpack(depth, known, final, parameters)

    def predicate(self, known: list[Variable]) -> str:
        if self.chance(0.5):
            return f"{self.text(known, (), False)} % 2 == {self.draw.choice((0, 1))}"
        return f"{self.text(known, ())} > {self.draw.choice((0.0371, 0.3712, -0.2713))}"

    def branches(self, depth: int, known: list[Variable], level: int, count: int) -> tuple[
            list[str], list[str], list[Variable]]:
        """Functions of the same operands with results of the same types."""
        operands = [self.recent(known) for _ in range(self.draw.choice((0, 1, 2)))]
        shapes = [(self.shape(), True) for _ in range(self.draw.choice((1, 1, 2)))]
        if self.chance(0.3):
            shapes.append(((), False))
        results = [Variable("", shape, is_float) for shape, is_float in shapes]
        functions = []
        for _ in range(count):
            function = self.fresh("f")
            parameters = [Variable(self.fresh("a"), v.shape, v.is_float) for v in operands]
            self.line(depth, f"def {function}({', '.join(p.name for p in parameters)}):")
            inner = self.body(depth + 1, known, level, parameters)
            self.line(depth + 1, f"return {self.next_carry(inner, results)}")
            functions.append(function)
        return functions, [v.name for v in operands], results

    def cond(self, depth: int, known: list[Variable], level: int) -> None:
        functions, operands, results = self.branches(depth, known, level, 2)
        final = self.fresh("r")
        self.line(depth, f"{final} = j.lax.cond("
                         f"{', '.join([self.predicate(known), *functions, *operands])})")
        self.unpack(depth, known, final, results)

    def switch(self, depth: int, known: list[Variable], level: int) -> None:
        functions, operands, results = self.branches(
            depth, known, level, self.draw.choice((1, 2, 3)))
        index = f"{self.text(known, (), False)} % 5 - 1"
        final = self.fresh("r")
        self.line(depth, f"{final} = j.lax.switch("
                         f"{', '.join([index, f'[{chr(44).join(functions)}]', *operands])})")
        self.unpack(depth, known, final, results)

    def function(self, depth: int, known: list[Variable], level: int,
                 argument: Variable, shape: Shape | None = None) -> tuple[str, Shape]:
        """A function of one array with one result."""
        function = self.fresh("f")
        parameter = Variable(self.fresh("a"), argument.shape, argument.is_float)
        self.line(depth, f"def {function}({parameter.name}):")
        inner = self.body(depth + 1, known, level, [parameter])
        shape = self.shape() if shape is None else shape
        self.line(depth + 1, f"return jnp.tanh({self.text(inner, shape)})")
        return function, shape

    def map(self, depth: int, known: list[Variable], level: int) -> None:
        sources = [v for v in known if v.shape and v.is_float]
        if not sources:
            return self.operation(depth, known)
        source = self.recent(sources)
        function, shape = self.function(
            depth, known, level, Variable("", source.shape[1:], True))
        size = f", batch_size={self.draw.choice((1, 2))}" if self.chance(0.3) else ""
        self.assign(depth, known, f"j.lax.map({function}, {source.name}{size})",
                    (source.shape[0], *shape))
        return None

    def vmapped(self, depth: int, known: list[Variable], level: int) -> None:
        sources = [v for v in known if v.shape and v.is_float]
        if not sources:
            return self.operation(depth, known)
        source = self.recent(sources)
        axis = self.draw.randrange(len(source.shape))
        rest = (*source.shape[:axis], *source.shape[axis + 1:])
        function, shape = self.function(depth, known, level, Variable("", rest, True))
        out = self.draw.randrange(len(shape) + 1)
        size = source.shape[axis]
        self.assign(depth, known, f"j.vmap({function}, {axis}, {out})({source.name})",
                    (*shape[:out], size, *shape[out:]))
        return None

    def transformed(self, depth: int, known: list[Variable], level: int) -> None:
        source = self.recent([v for v in known if v.is_float])
        function, shape = self.function(depth, known, level, source)
        name = self.draw.choice(["j.jit", "j.checkpoint", "j.checkpoint"])
        self.assign(depth, known, f"{name}({function})({source.name})", shape)

    def custom(self, depth: int, known: list[Variable], level: int) -> None:
        """A rule that is wrong by a factor, so that it is visible where it is not used. The
        function sees only its argument: it may not close over a tracer in JAX."""
        source = self.recent([v for v in known if v.is_float])
        rule = self.fresh("f")
        inside = self.draw.choice(["jnp.sin({0})", "jnp.tanh({0}) * {0}", "jnp.cos({0}) + 1"])
        value = inside.format("t")
        if self.chance(0.5) and self.reverse:
            self.line(depth, f"{rule} = j.custom_vjp(lambda t: {value})")
            self.line(depth, f"{rule}.defvjp(lambda t: ({value}, jnp.cos(t)), "
                             "lambda res, cotangent: (2 * cotangent * res,))")
        else:
            self.line(depth, f"{rule} = j.custom_jvp(lambda t: {value})")
            # Not {rule}(t): where scan is differentiated in reverse, JAX ignores the rule of the
            # forward part, and a second derivative is then that of the function itself.
            self.line(depth, f"{rule}.defjvp(lambda primals, tangents: ("
                             f"{inside.format('primals[0]')}, "
                             "3 * tangents[0] * jnp.cos(primals[0])))")
        self.assign(depth, known, f"{rule}({source.name})", source.shape)

    def derivative(self, depth: int, known: list[Variable], level: int) -> None:
        source = self.recent([v for v in known if v.is_float])
        reverse = self.reverse and self.chance(0.6)
        function, _ = self.function(depth, known, level, source, () if reverse else source.shape)
        name = source.name
        if reverse:
            text = f"j.grad({function})({name})"
        else:
            # A custom_vjp inside has no forward mode: this is for programs without reverse mode.
            text = (f"j.jvp({function}, ({name},), ({name} * 0.5 + 1,))[1]" if not self.reverse
                    else f"j.vjp({function}, {name})[1]({name} * 0.5 + 1)[0]")
        self.assign(depth, known, f"jnp.tanh({text})", source.shape)


def packed(texts: list[str]) -> str:
    return f"({', '.join(texts)},)"


class Program(NamedTuple):
    """A program: its text, arguments, and whether reverse mode is meant to work."""

    seed: int
    text: str
    args: tuple[Any, ...]
    reverse: bool

    def on(self, library: Any) -> Callable[..., Any]:
        names: dict[str, Any] = {"np": np}
        exec(compile(self.text, f"<program {self.seed}>", "exec"), names)
        return lambda *args: names["program"](library, *map(library.numpy.asarray, args))


def program(seed: int, structures: int | None = None) -> Program:
    """The program of a seed, with at most 6 to 14 loops, branches and transformations."""
    writer = Writer(seed, structures)
    draw = writer.draw
    shapes = [draw.choice(SHAPES), draw.choice(SHAPES)]
    known = [Variable("n", (), False), Variable("x", shapes[0]), Variable("y", shapes[1])]
    writer.line(0, "def program(j, x, y, n):")
    writer.line(1, "jnp = j.numpy")
    writer.block(1, known, draw.randint(3, 6), 0)
    results = known[-3:]
    if not any(v.is_float for v in results):
        results.append(writer.recent([v for v in known if v.is_float]))
    writer.line(1, f"return {packed([v.name for v in results])}")
    generator = np.random.default_rng(seed)
    args = (*(generator.normal(size=shape).astype(np.float32) for shape in shapes),
            np.int32(draw.randrange(6)))
    return Program(seed, "\n".join(writer.lines) + "\n", args, writer.reverse)
