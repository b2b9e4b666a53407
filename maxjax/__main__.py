"""``python -m maxjax SCRIPT [ARGS]``: runs an unchanged JAX script on maxjax.

Inside the script ``jax`` and its modules are maxjax's. Everything else is as under plain Python:
the script is ``__main__``, and arguments, tracebacks and exit codes are its own. Without a script
it is an interpreter. ``--prepare``, ``--doctor``, ``--install-kernel`` and ``--version`` look after
the installation instead; ``export-library`` writes a library for C. The command ``maxjax`` is the
same.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

_USAGE = """\
usage: maxjax [-i] SCRIPT [ARGS]
       maxjax [-i] -m MODULE [ARGS]
       maxjax [-i] -c CODE [ARGS]
       maxjax
       maxjax --prepare | --doctor | --install-kernel | --version
       maxjax export-library SCRIPT:FUNCTION [TYPE ...]
       (python -m maxjax is the same as maxjax)

Runs a JAX program on maxjax: `import jax` gives maxjax. Without a program, opens an interpreter.

  -i                opens an interpreter after the program
  --prepare         builds the kernel pack now; otherwise the background does, once a machine
  --doctor          reports on compiler, cache, pack, threads, devices; status 1: one is broken
  --install-kernel  adds a kernel to Jupyter in which `import jax` gives maxjax
  --version, -V     prints the versions that matter
  export-library    writes a function as a shared library for C (see its --help)
"""
_NOT_YET = "(maxjax does not have it yet)"
# The modules of jaxlib that libraries look into.
_OF_JAXLIB = ("_jax", "xla_client")
# What to use instead of modules that are about XLA and MLIR, by the beginning of their names.
_INSTEAD = {
    "_src.lib.mlir": "maxjax emits no MLIR: give a primitive a NumPy rule with def_impl, a "
                     "composition with jax.interpreters.mlir.lower_fun, or a kernel with "
                     "jax.extend.mojo",
    "_src.pallas": "maxjax has the public names of Pallas, in jax.experimental.pallas",
    "extend.mlir": "maxjax emits no MLIR: give a primitive a NumPy rule with def_impl, a "
                   "composition with jax.interpreters.mlir.lower_fun, or a kernel with "
                   "jax.extend.mojo",
    "experimental.pallas": "maxjax interprets kernels and compiles none for devices: such kernels "
                           "are written in Mojo, see jax.extend.mojo",
    "experimental.mosaic": "maxjax has no Mosaic: kernels are written in Mojo, see jax.extend.mojo",
    "tools": "maxjax writes programs as StableHLO: jax.jit(f).lower(x).as_text()",
}


# --- jax is maxjax --------------------------------------------------------------------------------

class _JaxModule(ModuleType):
    """The module ``jax``: maxjax's names, and the version that scripts check."""

    def __getattr__(self, name: str) -> Any:
        if name == "_src":
            return importlib.import_module(f"{self.__name__}._src")
        try:
            maxjax = importlib.import_module("maxjax")
            _name_classes()
            value = getattr(maxjax, name)
            # Also found in sys.modules, where libraries look for what they have used.
            if isinstance(value, ModuleType) and value.__name__ == f"maxjax.{name}":
                value = importlib.import_module(f"{self.__name__}.{name}")
            # Libraries read their names from here in each call. What maxjax makes up when it is
            # asked may be another the next time, or warn again.
            if name in vars(maxjax):
                self.__dict__[name] = value
            return value
        except AttributeError as error:
            text = str(error).replace("module 'maxjax'", f"module {self.__name__!r}")
            raise AttributeError(text, name=name, obj=self) from None

    def __dir__(self) -> list[str]:
        return sorted({*dir(importlib.import_module("maxjax")), *self.__dict__})


class _JaxlibModule(ModuleType):
    """The module ``jaxlib``; the modules in it that maxjax has are imported when asked for."""

    def __getattr__(self, name: str) -> Any:
        if self.__name__ == "jaxlib" and name in _OF_JAXLIB:
            return importlib.import_module(f"jaxlib.{name}")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name,
                             obj=self)


@functools.cache
def _name_classes() -> None:
    """Says of the classes of arrays and errors what JAX says: libraries tell an array's kind by the
    module of its class (autoray, for PennyLane), and tracebacks show an error's."""
    internals = importlib.import_module(_maxjax_name("_src.core"))
    for cls, module in internals.ARRAY_CLASSES.items():
        cls.__module__ = module


def _maxjax_name(rest: str) -> str:
    """The module of maxjax that replaces ``jax.{rest}``."""
    top, dot, inner = rest.partition(".")
    return f"maxjax.{'_internals' if top == '_src' else top}{dot}{inner}"


class JaxFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds maxjax's modules under JAX's names; real JAX is never imported."""

    def __init__(self) -> None:
        self._specs: dict[str, Any] = {}

    def __repr__(self) -> str:      # <module 'jax' (maxjax)>
        return "maxjax"

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        top, _, rest = fullname.partition(".")
        if top not in ("jax", "jaxlib"):
            return None
        if top == "jaxlib" and rest not in ("", "version", *_OF_JAXLIB):
            raise ModuleNotFoundError(
                f"No module named {fullname!r} (maxjax runs on MAX: there is no jaxlib)",
                name=fullname)
        if top == "jax" and rest:
            if importlib.util.find_spec(_maxjax_name(rest)) is None:
                hint = next((f"({text})" for start, text in _INSTEAD.items()
                             if f"{rest}.".startswith(f"{start}.")),
                            "(of JAX's private modules maxjax has what popular libraries use)"
                            if rest.startswith("_") else _NOT_YET)
                raise ModuleNotFoundError(f"No module named {fullname!r} {hint}", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        version = importlib.import_module("maxjax.version")
        top, _, rest = spec.name.partition(".")
        module: ModuleType
        if rest and rest != "version":
            module = importlib.import_module(
                _maxjax_name(rest if top == "jax" else f"_src.{rest}"))
            _name_classes()
            # The import system is about to write the alias's spec into the module.
            self._specs[spec.name] = (module.__spec__, module.__loader__)
            return module
        kind: type[ModuleType] = _JaxModule if spec.name == "jax" else _JaxlibModule
        module = kind(spec.name)
        module.__path__ = []
        module.__version__ = version.JAX_VERSION      # type: ignore[attr-defined]
        module.__version_info__ = tuple(      # type: ignore[attr-defined]
            map(int, version.JAX_VERSION.split(".")))
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        own = self._specs.pop(spec.name, None) if spec is not None else None
        if own is not None:
            module.__spec__, module.__loader__ = own


def install() -> None:
    """Makes ``import jax`` give maxjax, from now on in this process."""
    for name in list(sys.modules):
        if name.partition(".")[0] in ("jax", "jaxlib"):
            del sys.modules[name]
    sys.meta_path.insert(0, JaxFinder())


# --- running --------------------------------------------------------------------------------------

def _is_ours(traceback: TracebackType) -> bool:
    name = traceback.tb_frame.f_code.co_filename
    return name in (__file__, runpy.__file__) or name.startswith("<frozen ")


def _hide_our_frames() -> None:
    """Tracebacks of uncaught errors begin in the script."""
    report = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException,
                   traceback: TracebackType | None) -> None:
        first = traceback
        while first is not None and _is_ours(first):
            first = first.tb_next
        # Errors from importing a missing script are shown in full.
        if first is not None or isinstance(error, SyntaxError):
            traceback = first
        report(kind, error.with_traceback(traceback), traceback)

    sys.excepthook = excepthook


def _new_main(path: str | None) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    main.__dict__["__annotations__"] = {}
    if path is not None:
        main.__file__ = path
        main.__dict__["__cached__"] = None
        main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    return main


def _run_code(code: CodeType, main: ModuleType) -> None:
    exec(code, main.__dict__)


def _run_script(path: str) -> None:
    if path != "-" and (os.path.isdir(path) or path.endswith((".zip", ".pyz", ".whl"))):
        sys.path[0] = path
        with _one_line_if_missing(path):
            runpy.run_path(path, run_name="__main__")
        return
    if path == "-":
        source: Any = sys.stdin.read()
        name, file = "<stdin>", None
    else:
        try:
            with open(path, "rb") as stream:
                source = stream.read()
        except OSError as error:
            print(f"{sys.executable}: can't open file {os.path.abspath(path)!r}: "
                  f"[Errno {error.errno}] {error.strerror}", file=sys.stderr)
            sys.exit(2)
        name = file = os.path.join(os.getcwd(), path)      # as Python names it
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    _run_code(compile(source, name, "exec", dont_inherit=True), _new_main(file))


@contextlib.contextmanager      # noqa: TID251 -- it changes nothing that could be left behind
def _one_line_if_missing(path: str | None = None) -> Iterator[None]:
    """Ends as Python does where there is no such module to run, or none in a folder."""
    try:
        yield
    except ImportError as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        # Errors in the module's own imports come from elsewhere.
        if trace is None or trace.tb_frame.f_globals.get("__name__") != "runpy":
            raise
        text = str(error) if path is None else str(error).replace(
            repr(path), repr(os.path.abspath(path)))
        print(f"{sys.executable}: {text}", file=sys.stderr)
        sys.exit(1)


def _look_after(option: str, rest: Sequence[str]) -> int:
    """Does what an option without a script asks for; returns an exit status."""
    if option == "--install-kernel":
        return importlib.import_module("maxjax._runtime.notebooks").install_kernel(rest)
    installation = importlib.import_module("maxjax._runtime.installation")
    version = importlib.import_module("maxjax.version")
    release = f"maxjax {version.__version__} (JAX {version.JAX_VERSION})"
    if option == "--prepare":
        try:
            return installation.prepare()
        except KeyboardInterrupt:
            print("\ninterrupted; the libraries that are built are kept", file=sys.stderr)
            return 130      # as a shell says it
    if option == "--doctor":
        return installation.examine(release)
    print(installation.describe(release))
    return 0


def _start_python(options: Sequence[str], arguments: Sequence[str]) -> NoReturn:
    """Replaces this process by Python with other options of its own."""
    given = subprocess._args_from_interpreter_flags()      # type: ignore[attr-defined]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *given, *options, "-m", "maxjax", *arguments])


def _interpreter() -> None:
    """Prepares ``__main__`` for the interpreter that Python opens when this returns."""
    version = importlib.import_module("maxjax.version")
    print(f"maxjax {version.__version__}: `import jax` gives maxjax, with the API of JAX "
          f"{version.JAX_VERSION}. Python {sys.version.split()[0]}.", file=sys.stderr)
    install()
    _new_main(None)


def _refuse(problem: str) -> NoReturn:
    """Ends the process over a command line that is wrong, with how it would be right."""
    usage = _USAGE.split("\n\n")[0]
    print(f"{problem}\n{usage}\n`maxjax --help` says more.", file=sys.stderr)
    sys.exit(2)


def command() -> None:
    """The command ``maxjax``: ``python -m maxjax``, with its way of finding scripts and modules."""
    _start_python([], sys.argv[1:])


def main(arguments: Sequence[str]) -> None:
    """Runs the script or module that the arguments name, as Python's own command line would."""
    inspect = sys.flags.inspect
    if not arguments:
        if inspect:
            _interpreter()
            return
        if sys.stdin is not None and sys.stdin.isatty():
            _start_python(["-i"], [])
        arguments = ["-"]
    option, *rest = arguments
    if option in ("-h", "--help"):
        print(_USAGE, end="")
        sys.exit(0)
    if option == "-i":
        _start_python(["-i"], rest)
    if option in ("-m", "-c") and not rest:
        _refuse(f"Argument expected for the {option} option")
    if option in ("--prepare", "--doctor", "--install-kernel", "--version", "-V"):
        if rest and option != "--install-kernel":
            _refuse(f"{option} takes no arguments, got {' '.join(rest)}")
        sys.exit(_look_after(option, rest))
    if option.startswith("-") and option not in ("-m", "-c", "-"):
        _refuse(f"unknown option {option}")
    install()
    if option == "export-library":
        sys.exit(importlib.import_module("maxjax.export._command").main(rest))
    _hide_our_frames()
    if option == "-m":
        sys.argv = ["-m", *rest[1:]]
        _new_main(None)
        with _one_line_if_missing():
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path[0] = ""
        if sys.version_info >= (3, 13):      # whose tracebacks show the lines of such code
            linecache.cache["<string>"] = (
                len(rest[0]), None, rest[0].splitlines(keepends=True), "<string>")
        _run_code(compile(rest[0], "<string>", "exec", dont_inherit=True), _new_main(None))
    else:
        sys.argv = [option, *rest]
        _run_script(option)


if __name__ == "__main__":
    main(sys.argv[1:])
