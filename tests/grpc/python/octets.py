"""A google.protobuf.BytesValue there and back, which is all that the service needs of protobuf."""


def put_in(octets):
    """Field 1, of a length; left out where there is nothing."""
    return b"\x0a" + varint(len(octets)) + octets if octets else b""


def varint(number):
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def taken_out(message):
    if not message:
        return b""
    if message[0] != 0x0A:
        raise ValueError(f"not a BytesValue: {message[:20]!r}")
    length, at, shift = 0, 1, 0
    while True:
        length |= (message[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 128:
            break
    if len(message) != at + length:
        raise ValueError(f"{len(message)} octets, not {at + length}")
    return message[at:]
