"""What is known of each name and tier, kept on disk: a killed run goes on where it was."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from compat import ROOT
from compat.answers import FOLDER
from compat.spec import Case

Summary = dict[str, Any]


@functools.cache
def sources_digest(tier: str) -> str:
    """A digest of what a result depends on besides its cases."""
    digest = hashlib.sha256()
    files = [*sorted((ROOT / "maxjax").rglob("*.py")), *sorted((ROOT / "compat").glob("*.py")),
             ROOT / "compat" / "known_differences.toml", ROOT / "tests/support/tolerances.py"]
    if tier in ("1", "graph"):
        files += sorted((ROOT / "maxjax").rglob("*.mojo"))
    for path in files:
        digest.update(path.relative_to(ROOT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def digest_of(name: str, cases: Iterable[Case], tier: str) -> str:
    text = "\n".join([name, tier, sources_digest(tier), *(case.key for case in cases)])
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def provenance() -> dict[str, str]:
    """What a result was made from, on which day, and with what."""
    def git(*words: str) -> str:
        run = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
        return run.stdout.strip()

    commit = git("rev-parse", "--short=9", "HEAD") or "unknown"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "maxjax", "compat")
    versions = [f"{package} {metadata.version(package)}" for package in ("jax", "max", "numpy")]
    return {"commit": f"{commit}, changed" if changed else commit,
            "day": datetime.date.today().isoformat(),
            "versions": ", ".join([f"Python {platform.python_version()}", *versions]),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"}


class State:
    """``.compat/results.sqlite``: a summary for each name and tier ("api", "0", "1", "graph")."""

    def __init__(self, folder: Path | None = None):
        folder = folder or FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        self.database = sqlite3.connect(folder / "results.sqlite", timeout=120,
                                        isolation_level=None)
        self.database.execute("pragma journal_mode=wal")
        self.database.execute(
            "create table if not exists results (name text, tier text, digest text, summary text,"
            " primary key (name, tier))")

    def store(self, name: str, tier: str, digest: str, summary: Summary) -> None:
        self.database.execute("insert or replace into results values (?, ?, ?, ?)",
                              (name, tier, digest, json.dumps({**summary, "made": provenance()})))

    def known(self, name: str, tier: str, digest: str) -> Summary | None:
        """The summary, unless something has changed since."""
        row = self.database.execute(
            "select summary from results where name = ? and tier = ? and digest = ?",
            (name, tier, digest)).fetchone()
        return None if row is None else json.loads(row[0])

    def all_of(self, name: str, tier: str) -> Summary:
        """The last summary of a name, whatever has changed since; empty if there is none."""
        row = self.database.execute("select summary from results where name = ? and tier = ?",
                                    (name, tier)).fetchone()
        return {} if row is None else json.loads(row[0])

    def all(self, tier: str) -> dict[str, Summary]:
        """The last summaries of a tier, whatever has changed since."""
        return {name: json.loads(summary) for name, summary in self.database.execute(
            "select name, summary from results where tier = ?", (tier,))}

    def forget(self, names: Iterable[str], tiers: Iterable[str]) -> None:
        self.database.executemany("delete from results where name = ? and tier = ?",
                                  [(name, tier) for name in names for tier in tiers])
