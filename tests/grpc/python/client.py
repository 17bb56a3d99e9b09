"""Asks the service of judge/judge.go by grpcio and judges what comes: client.py [--authority CERTIFICATE] HOST:PORT

Prints one line of JSON, as the client in Go does, and ends with 1 where something was wrong.
"""

import json
import queue
import sys

import grpc

from octets import put_in, taken_out

SERVICE = "millstream.judge.Judge"
LARGEST = 16 << 20
LIMIT = 30

wrong = []


def same(about, found, expected):
    if found != expected:
        wrong.append(f"{about}: {found!r:.200}, expected {expected!r:.200}")


def octets(size, seed):
    return bytes((at * 31 + seed * 17 + (at >> 8)) & 255 for at in range(size))


def method(kind, name):
    return kind(f"/{SERVICE}/{name}", request_serializer=put_in,
                response_deserializer=taken_out)


def unary(channel):
    for size in (0, 1, 16_384, 300_000, 1 << 20):
        answer = method(channel.unary_unary, "Unary")(octets(size, 1), timeout=LIMIT)
        same(f"{size} octets", answer, octets(size, 1))


def server_stream(channel):
    for count, size in ((0, 8), (300, 100), (20, 100_000)):
        asked = f"{count} {size}".encode()
        got = list(method(channel.unary_stream, "ServerStream")(asked, timeout=LIMIT))
        same(f"numbers of {count}", [int.from_bytes(value[:8], "big") for value in got], list(range(count)))
        same(f"sizes of {count}", [len(value) for value in got], [size] * count)


def client_stream(channel):
    for count, size in ((0, 8), (300, 100), (20, 100_000)):
        messages = (octets(size, number) for number in range(count))
        answer = method(channel.stream_unary, "ClientStream")(messages, timeout=LIMIT)
        same(f"what the server got of {count}", answer.decode(), f"{count} {count * size}")


def ping_pong(channel):
    """Sends each message only after the answer to the one before has come."""
    for count, size in ((0, 8), (200, 100), (20, 50_000)):
        to_send = queue.SimpleQueue()
        answers = method(channel.stream_stream, "Bidi")(iter(to_send.get, None), timeout=LIMIT)
        for number in range(count):
            to_send.put(octets(size, number))
            same(f"message {number} of {count}", next(answers), octets(size, number))
        to_send.put(None)
        same(f"what is left of {count}", list(answers), [])


def failures(channel):
    for code in grpc.StatusCode:
        if code is grpc.StatusCode.OK:
            continue
        message = "Größe 100 % überschritten: 東京 🚂"
        try:
            method(channel.unary_unary, "Fail")(f"{code.value[0]} {message}".encode(), timeout=LIMIT)
            wrong.append(f"{code}: no error")
        except grpc.RpcError as error:
            same("code", error.code(), code)
            same("message", error.details(), message)


def metadata(channel):
    sent = (("plain", "a value"), ("octets-bin", b"\x00\x01\xfe\xff"))
    answer, call = method(channel.unary_unary, "Metadata").with_call(b"", metadata=sent, timeout=LIMIT)
    seen = json.loads(answer)
    same("plain", seen.get("plain"), ["YSB2YWx1ZQ=="])
    same("octets-bin", seen.get("octets-bin"), ["AAH+/w=="])
    first, last = call.initial_metadata(), call.trailing_metadata()
    same("first", [value for name, value in first if name == "first"], ["sent before"])
    same("first-bin", [value for name, value in first if name == "first-bin"], [b"\x00\xff before"])
    same("last", [value for name, value in last if name == "last"], ["one", "two"])
    same("last-bin", [value for name, value in last if name == "last-bin"], [b"\x00\xfe after"])


def connect(arguments):
    lengths = [("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)]
    if arguments[0] != "--authority":
        return grpc.insecure_channel(arguments[0], options=lengths)
    authority = grpc.ssl_channel_credentials(open(arguments[1], "rb").read())
    # The certificate is for that name, whatever the address is.
    named = lengths + [("grpc.ssl_target_name_override", "localhost")]
    return grpc.secure_channel(arguments[2], authority, options=named)


with connect(sys.argv[1:]) as channel:
    for judge in (unary, server_stream, client_stream, ping_pong, failures, metadata):
        try:
            judge(channel)
        except grpc.RpcError as error:
            wrong.append(f"{judge.__name__}: {error.code()}: {error.details()}")
print(json.dumps({"ok": not wrong, **({"wrong": wrong[:20]} if wrong else {})}))
sys.exit(1 if wrong else 0)
