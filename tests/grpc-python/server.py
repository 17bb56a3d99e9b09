"""A server of gRPC for scenarios: messages are bytes, and methods do what their names say. Says its port once it listens."""

import asyncio
import sys

import grpc
from grpc import aio


async def unary(request, context):
    sent = dict(context.invocation_metadata())
    await context.send_initial_metadata((("x-initial", "first"),))
    context.set_trailing_metadata((("x-last", sent.get("x-sent", "")), ("x-raw-bin", bytes(range(256)))))
    return request


async def fail(request, context):
    await context.abort(grpc.StatusCode.NOT_FOUND, "nö such thing")


async def wait(request, context):
    await asyncio.sleep(float(request))
    return b"slept"


async def count_down(request, context):
    for number in range(int(request), 0, -1):
        yield b"%d" % number


async def count(requests, context):
    return b"%d" % len([request async for request in requests])


async def echo(requests, context):
    async for request in requests:
        yield request


KINDS = {
    "Unary": (grpc.unary_unary_rpc_method_handler, unary),
    "Fail": (grpc.unary_unary_rpc_method_handler, fail),
    "Wait": (grpc.unary_unary_rpc_method_handler, wait),
    "CountDown": (grpc.unary_stream_rpc_method_handler, count_down),
    "Count": (grpc.stream_unary_rpc_method_handler, count),
    "Echo": (grpc.stream_stream_rpc_method_handler, echo),
}


class Methods(grpc.GenericRpcHandler):
    def service(self, call):
        kind = KINDS.get(call.method.rsplit("/", 1)[1])
        return kind and kind[0](kind[1])


async def main(options):
    server = aio.server(options=options)
    server.add_generic_rpc_handlers((Methods(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


# Each argument is an option of the library, as in grpc.max_concurrent_streams=5.
OPTIONS = [(name, int(value)) for name, value in (argument.split("=") for argument in sys.argv[1:])]
asyncio.run(main(OPTIONS))
