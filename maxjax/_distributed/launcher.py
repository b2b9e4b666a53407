"""Starts several processes of a job on this machine: ``python -m maxjax.distributed``."""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

from maxjax._distributed.secret import FILE_VARIABLE, VARIABLE, new_secret

# Between a request to end and the end by force.
_GRACE_SECONDS = 3.0


def free_port() -> int:
    """A port of this machine that is free, and stays so until somebody listens on it: the system
    gives connections their ports from 32768 on."""
    for port in random.sample(range(20000, 32768), 64):
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("localhost", port))
            return port
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def main(arguments: Sequence[str]) -> int:
    """Runs a script in several processes, with their numbers before each line that they print.

    Returns:
      0, or the status of the first process that failed, after which the others are ended.
    """
    parser = argparse.ArgumentParser(
        prog="python -m maxjax.distributed",
        description="Runs a JAX script in several processes on this machine; in each, "
                    "jax.distributed.initialize() needs no arguments.")
    parser.add_argument("-n", type=int, required=True, metavar="COUNT", help="how many processes")
    parser.add_argument("script", nargs=argparse.REMAINDER,
                        help="what `python -m maxjax` takes: SCRIPT [ARGS], or -m MODULE [ARGS]")
    given = parser.parse_args(arguments)
    if given.n < 1 or not given.script:
        parser.error("needs a positive count and a script")
    address = f"localhost:{free_port()}"
    processes = []
    # Without one that the user has given, the job has a secret of its own.
    secret = {} if os.environ.get(VARIABLE) or os.environ.get(FILE_VARIABLE) else {
        VARIABLE: new_secret()}
    for number in range(given.n):
        environment = {**os.environ, "JAX_COORDINATOR_ADDRESS": address,
                       "JAX_NUM_PROCESSES": str(given.n), "JAX_PROCESS_ID": str(number),
                       **secret, "PYTHONUNBUFFERED": "1"}
        processes.append(subprocess.Popen(
            [sys.executable, "-m", "maxjax", *given.script], env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    try:
        return _watch(processes)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        _end(processes)


def _watch(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    """Passes on what processes print until all have ended, or one has failed and the others have
    ended or had time to say why."""
    with selectors.DefaultSelector() as selector:
        rests = [b""] * len(processes)
        for number, process in enumerate(processes):
            assert process.stdout is not None
            selector.register(process.stdout, selectors.EVENT_READ, number)
        failed_at, status = None, 0
        while selector.get_map():
            for key, _ in selector.select(0.2):
                data = os.read(key.fd, 1 << 16)
                lines = (rests[key.data] + data).split(b"\n")
                rests[key.data] = lines.pop()
                if not data:
                    lines += [rests[key.data]] if rests[key.data] else []
                    selector.unregister(key.fileobj)
                for line in lines:
                    sys.stdout.buffer.write(b"[%d] %s\n" % (key.data, line))
                sys.stdout.flush()
            for process in processes:
                if process.poll() not in (None, 0) and failed_at is None:
                    failed_at, status = time.monotonic(), _status(process)
            if failed_at is not None and time.monotonic() - failed_at > _GRACE_SECONDS:
                return status
        for process in processes:
            process.wait()
            status = status or _status(process)
        return status


def _status(process: subprocess.Popen[bytes]) -> int:
    code = process.returncode or 0
    return 128 - code if code < 0 else code


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _GRACE_SECONDS
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
