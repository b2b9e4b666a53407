"""Names and addresses of machines."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

# An address that is nowhere: what leads there, leads to other machines.
_ELSEWHERE = "192.0.2.1"


def host_and_port(text: str, what: str, port: int | None = None) -> tuple[str, int]:
    """The parts of "host:port".

    Args:
      what: the argument that it is.
      port: the port where the text has none; None: it must have one.

    Raises:
      ValueError: the text has another form.
    """
    host, _, number = text.rpartition(":")
    if port is not None and (not host or text.endswith("]") or _is_numeric(text)):
        host, number = text, str(port)      # a host alone
    if not host or not number.isdigit() or int(number) > 65535:
        form = "'host:port'" if port is None else "'host:port' or 'host'"
        raise ValueError(f"{what} must be {form}, got {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(number)


def _is_numeric(text: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(text)
        return True
    return False


def resolved(host: str) -> str:
    """The numeric address of a host, the same in all processes: of several the first of IPv4.

    Many systems give a machine's own name an address that leads to itself alone. That is what
    ``localhost`` asks for; of another name, other machines know the address to the outside.

    Raises:
      OSError: there is no such host.
    """
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [str(each[4][0]) for each in sorted(
        found, key=lambda each: each[0] != socket.AF_INET)]
    address = addresses[0]
    if (host != "localhost" and not _is_numeric(host)
            and ipaddress.ip_address(address.partition("%")[0]).is_loopback):
        with contextlib.suppress(OSError):      # there is no network
            return own_address(_ELSEWHERE)
    return address


def family(address: str) -> socket.AddressFamily:
    """The family of a numeric address: IPv6 where it has a colon, else IPv4."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def own_address(other: str = _ELSEWHERE) -> str:
    """The address of this machine that a process at another address sees."""
    with socket.socket(family(other), socket.SOCK_DGRAM) as probe:
        probe.connect((other, 1))       # sends nothing
        return probe.getsockname()[0]
