"""The secret of a job: who has it may take part.

It comes from ``MAXJAX_JOB_SECRET`` or from the file that ``MAXJAX_JOB_SECRET_FILE`` names. Where
neither is set it is the user's own, which lies in the user's folder and is made when it is first
needed: so processes that one user starts on one machine, or on machines that share the folder, need
nothing. ``MAXJAX_JOB_SECRET=none`` lets anybody take part who reaches process 0, as JAX does.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from maxjax._base import variables

VARIABLE, FILE_VARIABLE = variables.JOB_SECRET, "MAXJAX_JOB_SECRET_FILE"
# The value of the variable that asks for no secret.
NONE = "none"
# Who listens to a handshake can try secrets at leisure: a short one would be found.
_LEAST_CHARACTERS = 16
_SECRET_BYTES = 32
_MOST_BYTES = 1 << 16


def job_key(environment: Mapping[str, str] = os.environ) -> bytes:
    """What signs the handshakes of this job: 32 bytes made of the secret.

    Raises:
      ValueError: the secret is too short, or others may read its file.
      OSError: the file cannot be read, or none could be made.
    """
    return hashlib.sha256(b"maxjax job\0" + _secret(environment)).digest()


def new_secret() -> str:
    """A secret for one job."""
    return os.urandom(_SECRET_BYTES).hex()


def _secret(environment: Mapping[str, str]) -> bytes:
    given = environment.get(VARIABLE, "").strip()
    if given == NONE:
        return NONE.encode()
    if given:
        return _long_enough(given.encode(), f"environment variable {VARIABLE}")
    path = environment.get(FILE_VARIABLE, "").strip()
    if path:
        return _long_enough(_read_given(Path(path).expanduser()), f"{path} ({FILE_VARIABLE})")
    return _own_secret(environment)


def _long_enough(secret: bytes, where: str) -> bytes:
    if len(secret) < _LEAST_CHARACTERS:
        raise ValueError(f"the job's secret in {where} has {len(secret)} characters, and needs "
                         f"{_LEAST_CHARACTERS} or more, such as `openssl rand -hex 32` makes")
    return secret


def _read_given(path: Path) -> bytes:
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if os.name != "nt" and status.st_mode & 0o027:
            raise ValueError(
                f"the job's secret in {path} can be read by all users or written by others (mode "
                f"{stat.S_IMODE(status.st_mode):04o}): chmod 600 it")
        return file.read(_MOST_BYTES).strip()


def _own_secret(environment: Mapping[str, str]) -> bytes:
    """The user's own secret, made if there is none."""
    base = environment.get("XDG_CONFIG_HOME", "")
    home = Path(base) if os.path.isabs(base) else Path.home() / ".config"
    # A home that cannot be written to is common in containers.
    folders = home / "maxjax", Path(tempfile.gettempdir()) / f"maxjax-{_user()}"
    reasons = []
    for folder in folders:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = os.lstat(folder)
            if not stat.S_ISDIR(status.st_mode) or not _is_ours(status, 0o022):
                raise ValueError(f"{folder} has to be a folder that this user alone can write to")
            return _made_or_read(folder / "job_secret")
        except OSError as error:
            reasons.append(str(error))
    raise OSError(f"this user's secret for jobs can be kept nowhere ({'; '.join(reasons)}): set "
                  f"{VARIABLE} to the same text in all processes of the job")


def _made_or_read(path: Path) -> bytes:
    if not path.exists():
        # Written under another name: who finds it finds all of it. Of several that make one at the
        # same time the first stays.
        descriptor, incoming = tempfile.mkstemp(prefix=".job_secret-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(new_secret())
            with contextlib.suppress(FileExistsError):
                os.link(incoming, path)
        finally:
            Path(incoming).unlink()
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
                         | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as opened:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_ours(status, 0o077):
            raise ValueError(f"{path} has to be a file that this user alone can read: remove it")
        return _long_enough(opened.read(_MOST_BYTES).strip(), str(path))


def _is_ours(status: os.stat_result, forbidden: int) -> bool:
    return os.name == "nt" or status.st_uid == os.geteuid() and not status.st_mode & forbidden


def _user() -> str:
    return "user" if os.name == "nt" else str(os.geteuid())
