"""Gunicorn's settings: workers = CPUs × 2 + 1, threads for requests that wait, and a Unix socket in the working directory unless API_SOCKET names another."""

import multiprocessing
import os

bind = "unix:" + os.environ.get("API_SOCKET", "api.sock")
workers = multiprocessing.cpu_count() * 2 + 1
worker_class = "gthread"
threads = 2
# Millstream keeps connections open and reuses them; Gunicorn should not be the one to close first.
keepalive = 75
