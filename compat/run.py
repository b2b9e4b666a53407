"""Runs the tables, or a part, and says what differs from JAX."""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence

from compat import evaluate
from compat.answers import Answers
from compat.outcome import Outcome, difference
from compat.spec import MODES, Case
from compat.tables import tables


@dataclasses.dataclass
class Result:
    """A case in a mode: what was wrong (None: nothing), and both outcomes."""

    case: Case
    mode: str
    problem: str | None
    ours: Outcome
    theirs: Outcome

    @property
    def skipped(self) -> bool:
        return bool(self.theirs.skipped) and self.problem is None

    def report(self) -> str:
        """A short reproduction."""
        lines = [f"  {self.mode}: {self.case.shown}"]
        for name, value in self.case.values().items():
            text = repr(value) if not hasattr(value, "dtype") else (
                f"{value.dtype.name}{list(value.shape)} {self.case.inputs[name].text}")
            lines.append(f"      {name} = {text}")
        lines += [f"      {self.problem}", f"      jax     {clip(self.theirs)}",
                  f"      maxjax  {clip(self.ours)}"]
        return "\n".join(lines)


def clip(outcome: Outcome) -> str:
    text = str(outcome)
    return text if len(text) < 700 else text[:700] + " ..."


def judge(case: Case, mode: str, ours: Outcome, theirs: Outcome) -> str | None:
    """What is wrong with maxjax's outcome, or with the table."""
    if mode == "eager" and case.raises is not None:
        if theirs.error is not None and not case.raises:
            return f"the table expects no error, but JAX: {theirs}"
        if theirs.error is None and case.raises:
            return "the table expects an error, but JAX raises none"
    said = case.raises if isinstance(case.raises, str) else None
    if theirs.error is not None and theirs.error[0][0] in ("NameError", "SyntaxError"):
        return f"the table's expression fails: {theirs}"
    return difference(ours, theirs, mode, case.tolerance, case.signed_zeros, said)


def tier0(name: str, cases: Sequence[Case], modes: Sequence[str], answers: Answers) -> list[Result]:
    questions = [(case, mode) for case in cases for mode in case.modes if mode in modes]
    theirs = answers.of(questions)
    results = []
    for case, mode in questions:
        ours = evaluate.run(evaluate.own(), case, mode)
        problem = judge(case, mode, ours, theirs[case, mode])
        results.append(Result(case, mode, problem, ours, theirs[case, mode]))
    return results


def selected(patterns: Sequence[str] | None) -> dict[str, list[Case]]:
    """Names that equal a pattern, or begin with one that ends in a dot or star."""
    known = tables()
    if not patterns:
        return known
    return {name: cases for name, cases in known.items()
            if any(name == p or (p[-1] in ".*" and name.startswith(p.rstrip("*")))
                   for p in patterns)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m compat", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        help="names, or beginnings that end in a dot or star")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--tier", choices=["0", "1"], default="0")
    parser.add_argument("--failures", type=int, default=3, help="shown of each name")
    options = parser.parse_args(arguments)
    chosen = selected(options.only)
    if not chosen:
        parser.error("no table has such a name")
    modes = options.modes.split(",")
    answers = Answers()
    failing = 0
    begin = time.perf_counter()
    for name, cases in chosen.items():
        results = tier0(name, cases, modes, answers)
        counts = []
        for mode in modes:
            part = [r for r in results if r.mode == mode and not r.skipped]
            good = sum(r.problem is None for r in part)
            counts.append(f"{mode} {good}/{len(part)}")
        problems = [r for r in results if r.problem is not None]
        failing += bool(problems)
        print(f"{'FAIL' if problems else 'pass'}  {name:40} {'  '.join(counts)}", flush=True)
        for result in problems[:options.failures]:
            print(result.report())
        if len(problems) > options.failures:
            print(f"  and {len(problems) - options.failures} more")
    print(f"{len(chosen) - failing} of {len(chosen)} names pass "
          f"({time.perf_counter() - begin:.1f} s)")
    return 1 if failing else 0


if __name__ == "__main__":
    sys.exit(main())
