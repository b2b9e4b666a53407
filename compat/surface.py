"""JAX's public names: which there are, how much they are used, whether maxjax has them."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import tomllib
import types
from typing import Any

from compat import ROOT, evaluate
from compat.outcome import plain, shorten
from compat.spec import Case, check, scalar_type

MODULES = (
    "jax", "jax.random", "jax.tree", "jax.tree_util", "jax.flatten_util", "jax.sharding",
    "jax.dtypes", "jax.errors", "jax.debug", "jax.custom_derivatives", "jax.custom_batching",
    "jax.ad_checkpoint", "jax.export", "jax.profiler", "jax.monitoring", "jax.ref", "jax.stages",
    "jax.typing", "jax.dlpack", "jax.distributed", "jax.test_util", "jax.experimental.checkify",
    "jax.numpy", "jax.numpy.linalg", "jax.numpy.fft", "jax.lax", "jax.lax.linalg",
    "jax.nn", "jax.nn.initializers", "jax.image", "jax.ops",
    "jax.example_libraries.optimizers", "jax.example_libraries.stax",
    *(f"jax.scipy.{module}" for module in (
        "cluster.vq", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
        "signal", "sparse.linalg", "spatial.transform", "special", "stats")),
    *(f"jax.scipy.stats.{distribution}" for distribution in (
        "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
        "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial",
        "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "t", "truncnorm", "uniform",
        "vonmises", "wrapcauchy")),
    "jax.experimental.jet", "jax.experimental.ode", "jax.experimental.sparse",
    "jax.experimental.sparse.linalg",
)
# Files of code: what they import for themselves is not public.
FILES = ("jax.example_libraries.optimizers", "jax.experimental.jet", "jax.experimental.ode",
         "jax.experimental.sparse.linalg")
ARRAY = "jax.Array"
AT = "jax.Array.at[]"
POLICIES = "jax.checkpoint_policies"
# Parameters that maxjax adds: keyword-only, and doing nothing where they are left out.
ADDED = {"jax.jit": ("dynamic_dims=None (keyword)",)}


@dataclasses.dataclass(frozen=True)
class Name:
    """A public name; ``weight`` is how much it is used, 0 where nobody was seen to."""

    name: str
    kind: str
    weight: float

    @property
    def module(self) -> str:
        return module_of(self.name)


def module_of(name: str) -> str:
    if name.startswith(ARRAY + "."):
        return ARRAY
    return name.rpartition(".")[0]


@functools.cache
def names() -> dict[str, Name]:
    """All public names in scope, the most used first; outside of MODULES (options, members of
    classes, internal modules) those that somebody uses."""
    found = {}
    for line in (ROOT / "compat" / "use.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, kind, weight = line.split()
            found[name] = Name(name, kind, float(weight))
    return dict(sorted(found.items(), key=lambda item: -item[1].weight))


@functools.cache
def excused() -> dict[str, str]:
    """The rows of surface.toml: names without cases, and why."""
    found = {}
    with open(ROOT / "compat" / "surface.toml", "rb") as stream:
        rows = tomllib.load(stream).get("name", [])
    for row in rows:
        for name in [row["name"]] if "name" in row else row["names"]:
            found[name] = row["reason"]
    return found


def default_cases(name: Name) -> list[Case]:
    """The cases that follow from a name's kind alone."""
    if name.kind == "dtype":
        value = "True" if name.name.endswith("bool_") else "1"
        return scalar_type(value)
    if name.kind == "primitive":
        return check("f.name", "f.multiple_results", "repr(f)")
    return []


# --- what there is --------------------------------------------------------------------------------

def listed_fully(name: str) -> bool:
    """Whether use.txt has all names of this one's module or class."""
    return module_of(name) in (*MODULES, ARRAY, AT, POLICIES)


def public_names() -> set[str]:
    """The public names of the installed JAX, for use.txt to be held against."""
    found = set()
    for module in MODULES:
        for name, value in vars(importlib.import_module(module)).items():
            if name.startswith("_") or isinstance(value, types.ModuleType):
                continue
            if module not in FILES or getattr(value, "__module__", "") == module:
                found.add(f"{module}.{name}")
    policies = evaluate.real().package.checkpoint_policies
    found |= {f"{POLICIES}.{name}" for name in vars(policies)}
    array = evaluate.real().numpy.zeros(1)
    found |= {f"{ARRAY}.{name}" for name in dir(array) if not name.startswith("_")}
    found |= {f"{AT}.{name}" for name in dir(array.at[0]) if not name.startswith("_")}
    return found


def find(library: evaluate.Library, name: str) -> Any:
    """What a name stands for; methods and properties as their class has them.

    Raises:
      AttributeError: there is none.
    """
    for prefix, make in ((AT + ".", lambda x: type(x.at[0])), (ARRAY + ".", type)):
        if name.startswith(prefix):
            owner = make(library.numpy.zeros(1))
            return inspect.getattr_static(owner, name.removeprefix(prefix))
    return library.find(name)


def signature(value: Any) -> list[str] | None:
    """Names, order, kinds and defaults; None where Python cannot tell, or it is no function."""
    if not callable(value) or isinstance(value, type):
        return None
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    parts = []
    for parameter in parameters:
        if parameter.name.startswith("_"):
            continue
        # The name of *args is nobody's business, and neither is which object stands for "none".
        text = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(
            parameter.kind.name, parameter.name)
        if parameter.default is not parameter.empty:
            value = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", plain(parameter.default))
            text += "=" + re.sub(r"^<.*>$", "<object>", value)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            text += " (positional)"
        elif parameter.kind is parameter.KEYWORD_ONLY:
            text += " (keyword)"
        parts.append(text)
    return parts


def api_problem(name: str) -> str | None:
    """What is missing: the name itself, or parameters of it."""
    kind = names()[name].kind if name in names() else ""
    try:
        ours = find(evaluate.own(), name)
    except AttributeError:
        return None if kind == "removed" else "maxjax does not have it"
    if kind == "removed":
        return "JAX has removed it: AttributeError is wanted"
    if name.rpartition(".")[2].startswith("__") or kind in ("primitive", "constant",
                                                                "type_alias"):
        return None
    theirs = signature(find(evaluate.real(), name))
    mine = signature(ours)
    if mine is not None:
        mine = [text for text in mine if text not in ADDED.get(name, ())]
    if theirs is None or mine == theirs:
        return None
    if mine is None:
        return f"it has no signature, not ({', '.join(theirs)})"
    return f"({shorten(', '.join(mine))}), not ({shorten(', '.join(theirs))})"
