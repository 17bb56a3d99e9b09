"""A small API of the kind that is often put behind a cache: every response costs some CPU time in Python.

Replace it with your own. `/` is a short list, `/items/<id>` has a validator and a lifetime of its own,
`/slow` takes as long as a page with many database queries, `/me` is personal, and `/private` forbids any sharing.
"""

import hashlib
import os
import time

from flask import Flask, jsonify, make_response, request

app = Flask(__name__)

# About 900 bytes, like the JSON of a typical list.
PEOPLE = [
    {"id": number, "name": f"Person {number}", "mail": f"person{number}@example.org", "active": number % 3 != 0}
    for number in range(11)
]


@app.get("/")
def index():
    return jsonify(people=PEOPLE)


@app.get("/items/<int:number>")
def item(number):
    if number > 1000:
        return jsonify(error="no such item"), 404
    text = f"item {number} " * 20
    answer = make_response(jsonify(id=number, text=text))
    answer.headers["Cache-Control"] = "public, max-age=60, stale-while-revalidate=30"
    answer.set_etag(hashlib.sha256(text.encode()).hexdigest()[:16])
    # 304 if the client (or the cache in front) already has this version.
    return answer.make_conditional(request)


@app.get("/slow")
def slow():
    time.sleep(0.66)
    return jsonify(took=0.66, process=os.getpid())


@app.get("/private")
def private():
    answer = make_response(jsonify(you=request.headers.get("Authorization", "nobody")))
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


@app.get("/me")
def me():
    """A personal page without caching headers, like most."""
    user = request.cookies.get("session") or request.headers.get("X-Api-Key")
    return jsonify(you=user or request.headers.get("Authorization", "nobody"))


@app.get("/client")
def client():
    """The request fields that the proxy in front sends."""
    return jsonify({name.lower(): value for name, value in request.headers.items()})
