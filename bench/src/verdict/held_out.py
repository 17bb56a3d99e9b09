"""An API of the held-out cases: `held_out.py PORT KIND`, a thread for each connection, and one thing that holds requests up."""

import gc
import mmap
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, KIND = int(sys.argv[1]), sys.argv[2]
LOCK = threading.Lock()
LOCAL = threading.local()
BODY = b"x" * 900
# Memory that begins with a page, as writing past the cache wants it.
BLOCK = mmap.mmap(-1, 1 << 20)


def disk():
    """Writes past the kernel's cache, and waits until the disk has it."""
    if not hasattr(LOCAL, "file"):
        name = f"held-{threading.get_ident()}"
        LOCAL.file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_DIRECT | os.O_DSYNC, 0o600)
        os.unlink(name)
    for place in range(4):
        os.pwrite(LOCAL.file, BLOCK, place * len(BLOCK))


def lock():
    """Waits for another system while it holds what everybody needs."""
    with LOCK:
        time.sleep(0.004)


def collected():
    """Some work, which a collection of garbage stops now and then."""
    sum(range(2000))


def collector():
    heap = [[[]] for _ in range(400_000)]
    while heap:
        time.sleep(0.1)
        gc.collect()


def apart():
    """Waits for another system that has room for all; then head and body are two packets (see below)."""
    time.sleep(0.05)


WORK = {"apart": apart, "disk": disk, "lock": lock, "collected": collected}[KIND]


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0 if KIND == "apart" else 65536
    disable_nagle_algorithm = KIND != "apart"

    def do_GET(self):
        WORK()
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


if KIND == "collected":
    threading.Thread(target=collector, daemon=True).start()
Server(("127.0.0.1", PORT), Answer).serve_forever()
