"""From outcomes to a verdict on a name in a tier."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from compat import differences, evaluate, surface
from compat.answers import Answers, Question
from compat.compiled import Batch, BuildFailed, Usage
from compat.outcome import Outcome, difference, shorten
from compat.spec import Case
from compat.state import Summary

# A summary shows this many cases that fail; the rest it counts.
SHOWN = 12
TEXT = 900


@dataclasses.dataclass
class Result:
    """A case in a mode and tier.

    Attributes:
      problem: what is wrong; None if nothing is.
      known: the title of the known difference that expects the case to differ.
    """

    case: Case
    mode: str
    tier: str
    problem: str | None
    ours: Outcome
    theirs: Outcome
    known: str | None = None
    usage: Usage | None = None

    @property
    def applies(self) -> bool:
        return self.problem is not None or not self.theirs.skipped

    @property
    def fails(self) -> bool:
        return self.problem is not None and self.known is None

    def shown(self) -> dict[str, Any]:
        """A short reproduction, as a summary keeps it."""
        inputs = []
        for name, value in self.case.values().items():
            made = self.case.inputs[name]
            text = repr(value) if made.weak else (
                f"{value.dtype.name}{list(value.shape)}  {made.text}  "
                + " ".join(repr(value.tolist()).split()))
            inputs.append(f"{name} = {shorten(text, 200)}")
        return {"mode": self.mode, "expression": self.case.shown, "inputs": inputs,
                "x64": self.case.x64, "problem": self.problem, "known": self.known,
                "jax": _clip(self.theirs), "maxjax": _clip(self.ours)}


def print_case(shown: dict[str, Any]) -> None:
    """Prints what ``Result.shown`` gives."""
    print(f"  {shown['mode']}: {shown['expression']}" + "  (x64)" * shown["x64"])
    for line in shown["inputs"]:
        print(f"      {line[:200]}")
    print(f"      {shown['problem']}")
    print(f"      jax     {shown['jax'][:500]}")
    print(f"      maxjax  {shown['maxjax'][:500]}")


def _clip(outcome: Outcome) -> str:
    text = str(outcome)
    return text if len(text) < TEXT else text[:TEXT] + " ..."


def verdict(case: Case, mode: str, tier: str, ours: Outcome, theirs: Outcome,
            usage: Usage | None = None) -> Result:
    """Compares, and looks the case up among the known differences."""
    result = Result(case, mode, tier, problem_of(case, mode, ours, theirs), ours, theirs,
                    usage=usage)
    pattern = differences.expected(case, mode, tier)
    unbuilt = ours.error is not None and BuildFailed.__name__ in ours.error[0]
    if pattern is not None and not unbuilt:
        if result.problem is not None:
            result.known = pattern.what
        elif not theirs.skipped:
            result.problem = ("agrees with JAX by now: known_differences.toml lists it under "
                              f"{pattern.what!r}")
    return result


def problem_of(case: Case, mode: str, ours: Outcome, theirs: Outcome) -> str | None:
    """What is wrong with maxjax's outcome, or with the table."""
    # An axis that is not bound is a NameError of JAX's, which a table says that it expects.
    if theirs.error is not None and theirs.error[0][0] in ("NameError", "SyntaxError") and not (
            isinstance(case.raises, str) and case.raises in theirs.error[1]):
        return f"the table's expression fails: {theirs}"
    if mode == "eager" and case.raises is not None:
        if theirs.error is not None and not case.raises:
            return f"the table expects no error, but JAX: {theirs}"
        if theirs.error is None and case.raises:
            return "the table expects an error, but JAX raises none"
    said = case.raises if isinstance(case.raises, str) else None
    return difference(ours, theirs, mode, case.tolerance, case.signed_zeros, said)


def questions_of(cases: Iterable[Case], modes: Sequence[str]) -> list[Question]:
    return [(case, mode) for case in cases for mode in case.modes if mode in modes]


def interpreted(cases: Sequence[Case], modes: Sequence[str], answers: Answers) -> list[Result]:
    """Tier 0."""
    theirs = answers.of(questions_of(cases, modes))
    return [verdict(case, mode, "0", evaluate.run(evaluate.own(), case, mode), outcome)
            for (case, mode), outcome in theirs.items()]


def to_compile(cases: Sequence[Case], modes: Sequence[str],
               answers: Answers) -> dict[Question, Outcome]:
    """What tier 1 has to compute: not what is refused, and not plain Python."""
    theirs = answers.of([q for q in questions_of(cases, modes)
                         if q[0].inputs or q[1] == "jit"])
    return {question: outcome for question, outcome in theirs.items()
            if outcome.error is None and not outcome.skipped}


def compiled(batch: Batch, questions: dict[Question, Outcome]) -> list[Result]:
    """Tier 1, or the graph backend, once the batch has been built."""
    results = []
    for (case, mode), theirs in questions.items():
        ours, usage = batch.run((case, mode))
        results.append(verdict(case, mode, "1" if batch.backend.name == "mojo" else "graph",
                               ours, theirs, usage))
    return results


def summary_of(results: Sequence[Result], seconds: float) -> Summary:
    """What the state keeps of a name in a tier."""
    modes: dict[str, list[int]] = {}
    for result in results:
        if result.applies:
            counts = modes.setdefault(result.mode, [0, 0, 0])
            counts[0 if result.problem is None else 1 if result.fails else 2] += 1
    problems = [r for r in results if r.problem is not None]
    kept = [r for r in problems if r.fails][:SHOWN] + [r for r in problems if not r.fails][:SHOWN]
    used = [r.usage for r in results if r.usage is not None]
    return {
        "modes": modes,      # [agree, fail, differ as is known]
        "problems": [result.shown() for result in kept],
        "compiled": sum(usage.compiled for usage in used),
        "host": sorted(set().union(*(usage.host for usage in used))) if used else [],
        "seconds": round(seconds, 2),
    }


def crashed(reason: str) -> Summary:
    return {"modes": {}, "problems": [], "compiled": 0, "host": [], "seconds": 0.0,
            "crash": reason}


def api(name: str) -> Summary:
    """Whether a name exists, with JAX's signature."""
    try:
        problem = surface.api_problem(name)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    return {"problem": problem, "modes": {}, "problems": []}


def failing(summary: Summary) -> int:
    """How many cases fail without being expected to; a crash counts as one."""
    return (sum(counts[1] for counts in summary["modes"].values()) + ("crash" in summary)
            + bool(summary.get("problem")))
