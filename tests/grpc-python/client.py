"""A client of gRPC for scenarios: asks a target for what it is told to, and says as JSON what came of it."""

import asyncio
import json
import sys
import time

import grpc
from grpc import aio


def method(channel, kind, name):
    return getattr(channel, kind)("/judge.Judge/" + name)


async def kinds(channel):
    call = method(channel, "unary_unary", "Unary")(b"hello", metadata=(("x-sent", "by a client"),))
    answer = await call
    first, last = dict(await call.initial_metadata()), dict(await call.trailing_metadata())
    large = await method(channel, "unary_unary", "Unary")(b"l" * 3_000_000)
    down = [m async for m in method(channel, "unary_stream", "CountDown")(b"3000")]
    counted = await method(channel, "stream_unary", "Count")(iter([b"m" * 2000] * 2000))
    return {
        "unary": answer.decode(),
        "initial": first.get("x-initial"),
        "last": last.get("x-last"),
        "raw": list(last.get("x-raw-bin", b"")) == list(range(256)),
        "large": len(large),
        "down": [len(down), down[0].decode(), down[-1].decode()],
        "counted": counted.decode(),
    }


async def talk(channel, messages):
    """Each message is sent once the one before it has come back."""
    call = method(channel, "stream_stream", "Echo")()
    for number in range(messages):
        await call.write(b"%d" % number)
        if await call.read() != b"%d" % number:
            return False
    await call.done_writing()
    return await call.read() is aio.EOF and await call.code() == grpc.StatusCode.OK


async def many(channel, streams):
    return {"whole": sum(await asyncio.gather(*(talk(channel, 3) for _ in range(int(streams)))))}


async def outcome(call):
    try:
        return ["OK", (await call).decode()]
    except aio.AioRpcError as error:
        return [error.code().name, error.details()]


async def errors(channel):
    unary = lambda name: method(channel, "unary_unary", name)
    began = time.monotonic()
    return {
        "fail": await outcome(unary("Fail")(b"")),
        "unknown": await outcome(unary("Nothing")(b"")),
        # The library does not count where the field is written by hand.
        "late": await outcome(unary("Wait")(b"20", metadata=(("grpc-timeout", "200m"),))),
        "took": time.monotonic() - began,
    }


async def call_until_told(channel):
    """Calls without a pause until a line comes in, and says which calls were lost."""
    loop, unary = asyncio.get_running_loop(), method(channel, "unary_unary", "Unary")
    told = loop.run_in_executor(None, sys.stdin.readline)
    print("begun", flush=True)
    made, lost = 0, []
    while not told.done():
        outcomes = await asyncio.gather(*(outcome(unary(b"x")) for _ in range(20)))
        made += len(outcomes)
        lost += [one for one in outcomes if one[0] != "OK"]
    return {"made": made, "lost": lost[:5]}


async def main(target, what, *arguments):
    options = [("grpc.max_receive_message_length", -1)]
    async with aio.insecure_channel(target, options=options) as channel:
        tasks = {"kinds": kinds, "many": many, "errors": errors, "until-told": call_until_told}
        print(json.dumps(await tasks[what](channel, *arguments)), flush=True)


asyncio.run(main(*sys.argv[1:]))
