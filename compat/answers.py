"""What real JAX answers, kept on disk: it never changes for a version of JAX."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compat import ROOT, evaluate
from compat.outcome import NotApplicable, Outcome, failed, succeeded
from compat.spec import Case

FOLDER = Path(os.environ.get("MAXJAX_COMPAT_FOLDER", ROOT / ".compat"))
# Counts up when what a mode computes changes.
FORMAT = 1

Question = tuple[Case, str]


def key_of(case: Case, mode: str) -> str:
    """A digest of all that the answer depends on, the inputs' values included."""
    digest = hashlib.sha256(f"{FORMAT}|{case.name}|{case.text}|{mode}|{case.x64}|"
                            f"{case.differentiable}|{case.mapped}".encode())
    variants = 3 if mode in ("vmap", "jvg") else 1
    for variant in range(variants):
        for name, value in case.values(variant).items():
            made = case.inputs[name]
            digest.update(f"|{name}|{made.held}|{made.weak}|{made.fixed}|{type(value)}".encode())
            if made.weak:
                digest.update(repr(value).encode())
            else:
                digest.update(f"{value.dtype}|{value.shape}|{value.strides}".encode())
                digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


class Answers:
    """JAX's outcomes, found in ``.compat/answers.sqlite`` or computed."""

    def __init__(self, folder: Path | None = None):
        folder = folder or FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        self.database = sqlite3.connect(folder / "answers.sqlite", timeout=120,
                                        isolation_level=None)
        self.database.execute("pragma journal_mode=wal")
        self.database.execute("pragma synchronous=off")
        self.database.execute(
            "create table if not exists answers (key text primary key, outcome blob)")

    def of(self, questions: Sequence[Question]) -> dict[Question, Outcome]:
        """The outcomes of all questions; what is not known is computed together."""
        keys = {question: key_of(*question) for question in questions}
        found: dict[Question, Outcome] = {}
        for question, key in keys.items():
            row = self.database.execute(
                "select outcome from answers where key = ?", (key,)).fetchone()
            if row is not None:
                found[question] = Outcome.loads(row[0])
        missing = [question for question in questions if question not in found]
        for x64 in (False, True):
            part = [question for question in missing if question[0].x64 == x64]
            if part:
                answers = ask(part, x64)
                found.update(answers)
                self.database.execute("begin")
                self.database.executemany(
                    "insert or replace into answers values (?, ?)",
                    [(keys[question], outcome.dumps()) for question, outcome in answers.items()])
                self.database.execute("commit")
        return {question: found[question] for question in questions}


def ask(questions: Sequence[Question], x64: bool) -> dict[Question, Outcome]:
    """JAX's outcomes: the eager ones one by one, all others in one compilation."""
    library = evaluate.real()
    found = {question: evaluate.run(library, *question)
             for question in questions if question[1] == "eager"}
    with evaluate.surroundings(library, x64):
        traced = {}
        for question in questions:
            case, mode = question
            if mode == "eager":
                continue
            try:
                prepared = evaluate.Prepared(library, case)
                function, args = prepared.call(mode)
                traced[question] = (library.package.jit(function).trace(*args), args,
                                    prepared.structure)
            except NotApplicable as reason:
                found[question] = Outcome(skipped=str(reason))
            except Exception as error:
                # What cannot be traced may still be differentiated or mapped without jit.
                found[question] = (evaluate.run(library, case, mode)
                                   if mode in ("grad", "vmap") else failed(error))
        try:
            found.update(_together(library, traced))
        except Exception:
            found.update({question: evaluate.run(library, *question) for question in traced})
    return found


def _together(library: evaluate.Library, traced: dict[Question, Any]) -> dict[Question, Outcome]:
    """The outcomes of traced functions, compiled as one program."""
    jax = library.package
    if not traced:
        return {}
    flat = {question: jax.tree_util.tree_leaves(args) for question, (_, args, _) in traced.items()}

    def everything(values: list[list[Any]]) -> list[list[Any]]:
        return [jax.core.eval_jaxpr(staged.jaxpr.jaxpr, staged.jaxpr.consts, *args)
                for (staged, _, _), args in zip(traced.values(), values)]

    results = jax.jit(everything)(list(flat.values()))
    found = {}
    for (question, (staged, _, structure)), leaves in zip(traced.items(), results):
        if question[1] in ("grad", "jvg"):
            structure = f"[{', '.join('*' for _ in leaves)}]"
        outcome = succeeded(structure, leaves)
        for leaf, aval in zip(outcome.leaves, staged.jaxpr.out_avals):
            leaf.weak = bool(getattr(aval, "weak_type", False))
        found[question] = outcome
    return found
