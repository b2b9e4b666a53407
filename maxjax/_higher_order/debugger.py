"""jax.debug.breakpoint: a prompt inside a running program."""

from __future__ import annotations

import cmd
import inspect
import pprint
import sys
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import IO, Any, NamedTuple

from maxjax._base import pytree, threads
from maxjax._base.pytree import PyTree
from maxjax._base.source import is_internal
from maxjax._higher_order.callback import pure_callback
from maxjax._higher_order.debugging import debug_callback
from maxjax._ir.trace import Tracer
from maxjax._primitives.convert import stop_gradient_p


class Frame(NamedTuple):
    """A Python frame, captured while tracing; traced values among its locals come at run time.

    ``locals`` has, for each name, the traced values inside its value, and what builds the value
    from known ones.
    """

    filename: str
    line: int
    source: list[str]
    first_line: int
    locals: dict[str, tuple[list[Any], Callable[[Sequence[Any]], Any]]]

    @staticmethod
    def of(frame: FrameType) -> Frame:
        try:
            source, first = inspect.getsourcelines(frame)
        except OSError:
            source, first = [], 0
        return Frame(frame.f_code.co_filename, frame.f_lineno,
                     [line.rstrip("\n") for line in source], max(first, 1),
                     {name: _flat(value) for name, value in frame.f_locals.items()})

    def shown(self, around: int) -> str:
        lines = [f"> {self.filename}({self.line})"]
        for number, text in enumerate(self.source, self.first_line):
            if self.line - 1 - around <= number <= self.line + around:
                lines.append(f"{'->  ' if number == self.line else '    '}{text}")
        return "\n".join(lines)

    def brief(self) -> str:
        position = self.line - self.first_line
        text = self.source[position].strip() if position < len(self.source) else "<no source>"
        return f'  File "{self.filename}", line {self.line}\n    {text}'


def _flat(value: PyTree) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The traced values inside a value, and a function from known ones to the whole."""
    try:
        leaves, tree = pytree.flatten(value)
    except Exception:      # such as a dict whose keys have no order: shown as it is
        return [], lambda known: value
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tracer)]
    if not places:
        return [], lambda known: value

    def build(known: Sequence[object]) -> Any:
        filled = dict(zip(places, known, strict=True))
        return pytree.unflatten(tree, [filled.get(n, leaf) for n, leaf in enumerate(leaves)])

    return [leaves[n] for n in places], build


class Prompt(cmd.Cmd):
    """Looks at the values of frames, the innermost first."""

    prompt = "(jdb) "
    intro = "Entering jdb:"

    def __init__(self, frames: list[tuple[Frame, dict[str, object]]], stdin: IO[str] | None = None,
                 stdout: IO[str] | None = None, completekey: str = "tab"):
        super().__init__(completekey, stdin, stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.level = 0

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def _evaluate(self, expression: str, show: Callable[[object], str]) -> None:
        try:
            text = show(eval(expression, {}, dict(self.frames[self.level][1])))
        except Exception as error:
            text = f"*** {traceback.format_exception_only(error)[-1].strip()}"
        self._say(text)

    def _move(self, step: int, end: str) -> None:
        if 0 <= self.level + step < len(self.frames):
            self.level += step
        else:
            self._say(end)
        self._say(self.frames[self.level][0].shown(2))

    def default(self, line: str) -> None:
        self._evaluate(line, repr)

    def do_p(self, expression: str) -> None:
        """p expression: prints its value."""
        self._evaluate(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp expression: prints its value over several lines."""
        self._evaluate(expression, pprint.pformat)

    def do_up(self, _: str) -> None:
        """u(p): to the frame that called this one."""
        self._move(1, "At topmost frame.")

    def do_down(self, _: str) -> None:
        """d(own): to the frame that this one called."""
        self._move(-1, "At bottommost frame.")

    def do_list(self, _: str) -> None:
        """l(ist): the source around the line."""
        self._say(self.frames[self.level][0].shown(5))

    def do_where(self, _: str) -> None:
        """w(here), bt: the frames, the innermost last."""
        self._say("\n".join(["Traceback:", *(frame.brief() for frame, _ in self.frames[::-1])]))

    def do_continue(self, _: str) -> bool:
        """c(ont(inue)): goes on with the program."""
        return True

    def do_quit(self, _: str) -> None:
        """q(uit), exit: ends the process."""
        sys.exit(0)

    do_u, do_d, do_l = do_up, do_down, do_list
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit


_one_at_a_time = threads.lock()


def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, token: PyTree = None,
               **kwargs: PyTree) -> Any:
    """Stops a program, also inside ``jit``, at a prompt that knows the values around the call.

    The prompt evaluates expressions, and knows ``p``, ``pp``, ``up``, ``down``, ``list``,
    ``where``, ``continue`` and ``quit``.

    Args:
      backend: accepted; there is one.
      filter_frames: leave out the frames of maxjax itself.
      num_frames: how many frames, from the call outwards.
      ordered: see ``debug.callback``.
      token: a pytree of arrays that is returned; the program stops when they are computed, if
        what is returned is used. Excludes ``ordered``.
      kwargs: ``stdin`` and ``stdout``, of the prompt.

    Raises:
      ValueError: ``token`` and ``ordered`` are both given.
    """
    if token is not None and ordered:
        raise ValueError("`ordered` and `token` are mutually exclusive arguments.")
    here = inspect.currentframe()
    found: list[Frame] = []
    current = None if here is None else here.f_back
    while current is not None and (num_frames is None or len(found) < num_frames):
        if not (filter_frames and is_internal(current.f_code)):
            found.append(Frame.of(current))
        current = current.f_back
    # The callback's operands; everything else is known already.
    traced = [{name: value[0] for name, value in frame.locals.items()} for frame in found]

    def stop(known: list[dict[str, list[object]]]) -> None:
        frames = [(frame, {name: build(values[name])
                           for name, (_, build) in frame.locals.items()})
                  for frame, values in zip(found, known, strict=True)]
        with _one_at_a_time:
            while True:
                try:
                    return Prompt(frames, **kwargs).cmdloop()
                except KeyboardInterrupt:
                    print("--KeyboardInterrupt--")

    if token is None:
        debug_callback(stop, traced, ordered=ordered)
        return None

    def stop_and_return(token: PyTree, known: list[dict[str, list[object]]]) -> Any:
        stop(known)
        return token

    # A pure callback has no derivative.
    token, traced = pytree.map(
        lambda x: stop_gradient_p.bind(x) if isinstance(x, Tracer) else x, (token, traced))
    return pure_callback(stop_and_return, token, token, traced)
