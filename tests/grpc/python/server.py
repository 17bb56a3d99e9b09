"""The service of judge/judge.go by grpcio, as far as Python's programs need it: server.py [CERTIFICATE KEY]

Prints the port that the system chose, and ends in order on TERM.
"""

import base64
import json
import signal
import struct
import sys
import threading
from concurrent import futures

import grpc

from octets import put_in, taken_out

SERVICE = "millstream.judge.Judge"
LARGEST = 16 << 20


def unary(asked, context):
    context.send_initial_metadata((("served-by", "python"),))
    return asked


def fail(asked, context):
    code, _, message = asked.decode().partition(" ")
    codes = {code.value[0]: code for code in grpc.StatusCode}
    context.abort(codes[int(code)], message)


def server_stream(asked, _):
    count, size = map(int, asked.split())
    for number in range(count):
        yield struct.pack(">Q", number) + bytes(size - 8)


def client_stream(messages, _):
    count, octets = 0, 0
    for message in messages:
        count, octets = count + 1, octets + len(message)
    return f"{count} {octets}".encode()


def bidi(messages, _):
    yield from messages


def metadata(_, context):
    context.set_trailing_metadata((("last", "one"), ("last", "two"), ("last-bin", b"\x00\xfe after")))
    context.send_initial_metadata((("first", "sent before"), ("first-bin", b"\x00\xff before")))
    seen = {}
    for name, value in context.invocation_metadata():
        seen.setdefault(name, []).append(value if isinstance(value, bytes) else value.encode())
    return as_json(seen)


def as_json(seen):
    """As Go writes octets in JSON."""
    listed = {name: [base64.b64encode(value).decode() for value in values] for name, values in seen.items()}
    return json.dumps(listed).encode()


def handlers():
    forms = {"request_deserializer": taken_out, "response_serializer": put_in}
    return {
        "Unary": grpc.unary_unary_rpc_method_handler(unary, **forms),
        "Fail": grpc.unary_unary_rpc_method_handler(fail, **forms),
        "Metadata": grpc.unary_unary_rpc_method_handler(metadata, **forms),
        "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream, **forms),
        "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream, **forms),
        "Bidi": grpc.stream_stream_rpc_method_handler(bidi, **forms),
    }


def main():
    lengths = [("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=lengths)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers()),))
    if len(sys.argv) == 3:
        certificate, key = (open(path, "rb").read() for path in sys.argv[1:])
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    print(port, flush=True)
    asked.wait()
    server.stop(grace=10).wait()


main()
