"""Protocol buffers' wire format: fields of a message, written and read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

# https://protobuf.dev/programming-guides/encoding
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_SIZES = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def varint(value: int) -> bytes:
    """An integer of 64 bits, seven of them in a byte; negative ones as their two's complement."""
    value &= (1 << 64) - 1
    digits = bytearray()
    while True:
        value, digit = value >> 7, value & 127
        digits.append(digit | (128 if value else 0))
        if not value:
            return bytes(digits)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | _VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | _EIGHT_BYTES) + struct.pack("<d", value)


def content(field: int, value: bytes) -> bytes:
    """A field of a text, of bytes or of another message."""
    return varint(field << 3 | _LENGTH) + varint(len(value)) + value


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    """The integer at a place, without a sign, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if place == len(data):
            break
        value |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return value, place
    raise ValueError("a protocol buffer ends within an integer")


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, by their numbers: integers without a sign, or bytes.

    Raises:
      ValueError: it is no message, or not a whole one.
    """
    place = 0
    while place < len(data):
        key, place = _read_varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _read_varint(data, place)
            yield key >> 3, value
            continue
        if kind == _LENGTH:
            size, place = _read_varint(data, place)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError(f"a protocol buffer has a field of the unknown kind {kind}")
        if place + size > len(data):
            raise ValueError("a protocol buffer ends within a field")
        yield key >> 3, data[place:place + size]
        place += size


def signed(value: int) -> int:
    """An integer of 64 bits that has a sign."""
    return value - (1 << 64) if value >> 63 else value


def as_double(value: bytes) -> float:
    """A number of eight bytes.

    Raises:
      ValueError: there are more, or fewer.
    """
    if len(value) != 8:
        raise ValueError(f"a protocol buffer has a float64 of {len(value)} bytes")
    return float(struct.unpack("<d", value)[0])
