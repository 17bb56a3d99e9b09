"""Gunicorn's settings: workers = CPUs × 2 + 1, threads for the waits, a unix socket beside this file unless told."""

import multiprocessing
import os

bind = "unix:" + os.environ.get("API_SOCKET", "api.sock")
workers = multiprocessing.cpu_count() * 2 + 1
worker_class = "gthread"
threads = 2
# Millstream keeps connections open and reuses them; Gunicorn should not be the one to close first.
keepalive = 75
