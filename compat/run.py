"""Runs the tables, or a part, and says what differs from JAX."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from compat import ROOT, explore, judge, report, scripts_runner, surface
from compat.answers import FOLDER, Answers
from compat.chosen import GRAPH_MODES, cases_of, selected
from compat.compiled import Batch, Graph, Mojo
from compat.spec import MODES
from compat.state import State, Summary, digest_of

TIERS = ("api", "0", "1", "graph")
PROCESSES = 2
# Names that one process takes at a time; tier 1 builds the kernels of all of them together.
CHUNK = {"api": 200, "0": 8, "1": 24, "graph": 40}
# A process that says nothing for so long has hung.
SILENCE_SECONDS = {"api": 120, "0": 300, "1": 1200, "graph": 1800}


# --- one process ----------------------------------------------------------------------------------

def run_names(names: Sequence[str], tier: str, modes: Sequence[str], answers: Answers,
              begin: Callable[[str], None], done: Callable[[str, Summary], None],
              backends: dict[str, Mojo | Graph]) -> None:
    """Runs names in a tier; ``begin`` and ``done`` are called for each."""
    cases = cases_of(tier)
    if tier == "api":
        for name in names:
            begin(name)
            done(name, judge.api(name))
        return
    if tier == "0":
        for name in names:
            begin(name)
            start = time.perf_counter()
            results = judge.interpreted(cases[name], modes, answers)
            done(name, judge.summary_of(results, time.perf_counter() - start))
        return
    if tier not in backends:
        backends[tier] = Mojo() if tier == "1" else Graph()
    batch = Batch(backends[tier])
    wanted = {}
    start = time.perf_counter()
    for name in names:
        begin(name)
        wanted[name] = judge.to_compile(
            cases[name], modes if tier == "1" else GRAPH_MODES, answers)
        for question in wanted[name]:
            batch.plan(question)
    begin("")
    batch.build()
    share = (time.perf_counter() - start) / max(1, len(names))
    for name in names:
        begin(name)
        start = time.perf_counter()
        results = judge.compiled(batch, wanted[name])
        done(name, judge.summary_of(results, share + time.perf_counter() - start))


def work(modes: Sequence[str]) -> int:
    """A worker: reads lines of a tier and names, says what it begins and what it has done."""
    answers, state = Answers(), State()
    backends: dict[str, Mojo | Graph] = {}
    # What the libraries print must not be taken for the worker's own words.
    voice = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(*words: str) -> None:
        print(*words, file=voice, flush=True)

    for line in sys.stdin:
        tier, *names = line.split()

        def done(name: str, summary: Summary, tier: str = tier) -> None:
            state.store(name, tier, digest_of(name, cases_of(tier)[name], tier), summary)
            say("done", name)

        run_names(names, tier, modes, answers, lambda name: say("begin", name), done, backends)
        say("ready")
    return 0


# --- all processes --------------------------------------------------------------------------------

class Worker:
    """A process that runs names; what it was at when it died is known."""

    def __init__(self, modes: Sequence[str], log: Path):
        self.modes = modes
        self.log = log
        self.current = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1",
                       "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false "
                       + os.environ.get("XLA_FLAGS", "")}
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "compat", "--worker", "--modes", ",".join(self.modes)],
                cwd=ROOT, env=environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)

    def run(self, tier: str, names: Sequence[str], on_done: Callable[[str], None],
            tick: Callable[[], None] = lambda: None) -> str | None:
        """Runs names; returns why the process died, if it did, ``current`` being at fault.

        ``tick`` is called about once a second.
        """
        if self.process is None:
            self.start()
        process = self.process
        assert process is not None and process.stdin is not None and process.stdout is not None
        self.current = ""
        hung = threading.Event()
        last = [time.monotonic()]

        def watch() -> None:
            while process.poll() is None and not over.wait(1.0):
                tick()
                if time.monotonic() - last[0] > SILENCE_SECONDS[tier]:
                    hung.set()
                    process.kill()
                    return

        over = threading.Event()
        threading.Thread(target=watch, daemon=True).start()
        try:
            print(tier, *names, file=process.stdin, flush=True)
            for line in process.stdout:
                last[0] = time.monotonic()
                word, *rest = line.split()
                if word == "ready":
                    return None
                if word == "begin":
                    self.current = rest[0] if rest else ""
                elif word == "done":
                    self.current = ""
                    on_done(rest[0])
        except BrokenPipeError:
            pass
        finally:
            over.set()
        status = process.wait()
        self.process = None
        if hung.is_set():
            return f"it said nothing for {SILENCE_SECONDS[tier]} s"
        return f"the process died (status {status})"

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait()


class Progress:
    """A line that says how far the run is, and when it will be done."""

    def __init__(self, waiting: dict[str, int]):
        self.waiting = dict(waiting)
        self.total = sum(waiting.values())
        self.tier = {tier: [0, 0.0] for tier in TIERS}      # names done, seconds
        self.begin = self.printed = time.monotonic()
        self.lock = threading.Lock()

    def done(self, tier: str, name: str, seconds: float) -> None:
        with self.lock:
            self.waiting[tier] -= 1
            self.tier[tier][0] += 1
            self.tier[tier][1] += seconds
        self.tick(tier, name)

    def tick(self, tier: str, name: str) -> None:
        """Prints the line, if the last one is old."""
        with self.lock:
            now = time.monotonic()
            terminal = sys.stderr.isatty()
            if now - self.printed > (0.5 if terminal else 30.0):
                self.printed = now
                line = self.line(tier, name)
                print(f"\r\033[K{line}" if terminal else line, end="" if terminal else "\n",
                      file=sys.stderr, flush=True)

    # Seconds a name, where none has run yet.
    GUESS = {"api": 0.01, "0": 3.0, "1": 4.0, "graph": 6.0}

    def line(self, tier: str, name: str) -> str:
        left = 0.0
        for kind, count in self.waiting.items():
            done, seconds = self.tier[kind]
            left += count * (seconds / done if done else self.GUESS[kind])
        left /= PROCESSES
        finished = self.total - sum(self.waiting.values())
        elapsed = time.monotonic() - self.begin
        return (f"{finished}/{self.total}  tier {tier}  {name}  "
                f"{minutes(elapsed)} so far, {minutes(left)} to go")


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def run_all(names: Sequence[str], tiers: Sequence[str], modes: Sequence[str], state: State,
            processes: int = PROCESSES) -> None:
    """Runs what is not known yet, in processes of their own."""
    tasks: list[tuple[str, list[str]]] = []
    waiting = dict.fromkeys(TIERS, 0)
    for tier in tiers:
        cases = cases_of(tier)
        missing = [name for name in names if name in cases
                   and state.known(name, tier, digest_of(name, cases[name], tier)) is None]
        waiting[tier] = len(missing)
        size = max(1, min(CHUNK[tier], -(-len(missing) // processes)))
        tasks += [(tier, missing[i:i + size]) for i in range(0, len(missing), size)]
    progress = Progress(waiting)
    lock = threading.Lock()
    log = FOLDER / "workers.log"

    def serve() -> None:
        worker = Worker(modes, log)
        own = State()
        try:
            while True:
                with lock:
                    if not tasks:
                        return
                    tier, left = tasks.pop(0)
                while left:
                    def on_done(name: str, tier: str = tier, left: list[str] = left) -> None:
                        left.remove(name)
                        summary = own.all_of(name, tier)
                        progress.done(tier, name, summary.get("seconds", 0.0))

                    def tick(tier: str = tier) -> None:
                        progress.tick(tier, worker.current or "building")

                    reason = worker.run(tier, list(left), on_done, tick)
                    if reason is not None:
                        guilty = worker.current or left[0]
                        if guilty in left:
                            left.remove(guilty)
                        own.store(guilty, tier, digest_of(guilty, cases_of(tier)[guilty], tier),
                                  judge.crashed(reason))
                        progress.done(tier, guilty, 0.0)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve) for _ in range(min(processes, len(tasks)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if sys.stderr.isatty() and progress.total:
        print("\r\033[K", end="", file=sys.stderr)


# --- the command ----------------------------------------------------------------------------------

def show(names: Iterable[str], tier: str, state: State, failures: int) -> int:
    """Prints names and their failing cases; returns how many names fail."""
    bad = 0
    for name in names:
        summary = state.all_of(name, tier)
        if not summary:
            continue
        bad += print_summary(name, tier, summary, failures)
    return bad


def print_summary(name: str, tier: str, summary: Summary, failures: int) -> bool:
    wrong = judge.failing(summary)
    if tier == "api":
        if wrong:
            print(f"FAIL  {name:40} {summary['problem']}")
        return bool(wrong)
    counts = "  ".join(
        f"{mode} {good}/{good + fail + known}" + (f" ({known} known)" if known else "")
        for mode, (good, fail, known) in summary["modes"].items())
    note = ""
    if tier != "0":
        note = f"  [{summary['compiled']} compiled]"
        if summary["host"]:
            note += f" host: {'; '.join(summary['host'])[:120]}"
    print(f"{'FAIL' if wrong else 'pass'}  {name:40} {counts}{note}"
          + (f"  CRASH: {summary['crash']}" if "crash" in summary else ""), flush=True)
    unexpected = [p for p in summary["problems"] if not p["known"]]
    for problem in unexpected[:failures]:
        judge.print_case(problem)
    if len(unexpected) > failures:
        print(f"  and {wrong - failures} more")
    return bool(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["scripts"]:
        records = scripts_runner.main(arguments[1:])
        if "--write" in arguments:
            report.write_scripts(records)
        return int(any(record.state == "fail" for record in records))
    parser = argparse.ArgumentParser(prog="python -m compat", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME",
                        help="names, or beginnings that end in a dot or star; prints each")
    parser.add_argument("--modes", default=",".join(MODES), help="with --only")
    parser.add_argument("--tier", choices=["api", "0", "1", "graph"], help="with --only; 0")
    parser.add_argument("--failures", type=int, default=3, help="shown of each name")
    parser.add_argument("--fresh", action="store_true", help="forget what was found before")
    parser.add_argument("--no-graph", action="store_true", help="leave the graph backend out")
    parser.add_argument("--no-scripts", action="store_true", help="leave the scripts out")
    parser.add_argument("--explore", type=int, metavar="N", help="N random cases of each name")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    modes = options.modes.split(",")
    if options.worker:
        return work(modes)
    chosen = selected(options.only)
    if not chosen:
        parser.error("there is no such name")
    if options.explore:
        return explore.main(chosen, options.explore)
    if options.only:
        return run_here(chosen, options.tier or "0", modes, options.failures)
    return run_matrix(options)


def run_here(chosen: Sequence[str], tier: str, modes: Sequence[str], failures: int) -> int:
    """Runs names in this process, whatever is known of them, and prints each."""
    known = cases_of(tier)
    untested = [name for name in chosen if name not in known]
    chosen = [name for name in chosen if name in known]
    state = State()
    bad = []
    start = time.perf_counter()

    def done(name: str, summary: Summary) -> None:
        if tuple(modes) == MODES:
            state.store(name, tier, digest_of(name, known[name], tier), summary)
        if print_summary(name, tier, summary, failures):
            bad.append(name)

    if tier == "0":
        for name in chosen:
            summary = judge.api(name)
            if summary["problem"]:
                print_summary(name, "api", summary, failures)
                bad.append(name)
    for i in range(0, len(chosen), 60):
        run_names(chosen[i:i + 60], tier, modes, Answers(), lambda name: None, done, {})
    if untested and tier in ("0", "1"):
        excused = [name for name in untested if name in surface.excused()]
        untested = [name for name in untested if name not in excused]
        print(f"without cases: {', '.join(untested) or 'none'}"
              + (f" (and {len(excused)} in surface.toml)" if excused else ""))
    print(f"{len(chosen) - len(set(bad) & set(chosen))} of {len(chosen)} names pass "
          f"({time.perf_counter() - start:.1f} s)")
    return 1 if bad else 0


def run_matrix(options: argparse.Namespace) -> int:
    """The whole matrix; writes compat/matrix.md and compat/matrix.html."""
    if options.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    state = State()
    tiers = [tier for tier in TIERS if tier != "graph" or not options.no_graph]
    start = time.monotonic()
    run_all(list(cases_of("0") | cases_of("api")), tiers, MODES, state)
    scripts = [] if options.no_scripts else scripts_runner.main([])
    matrix = report.build(state, scripts)
    report.write(matrix)
    print(report.headline(matrix))
    print("compat/matrix.md and compat/matrix.html are written "
          f"({minutes(time.monotonic() - start)})")
    return report.status(matrix)


if __name__ == "__main__":
    sys.exit(main())
