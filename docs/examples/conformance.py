#!/usr/bin/env python3
"""Answers `worldwire conformance` by running `worldwire decode` and `worldwire encode`.

Usage: worldwire conformance --vectors vectors/uru python3 conformance.py worldwire

Replace `decode` and `encode` with your own.
"""

import json
import subprocess
import sys

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "worldwire"


def run(arguments, given=""):
    """Standard output. If there is none, raises the error that the program reports."""
    done = subprocess.run([PROGRAM, *arguments], input=given, capture_output=True, text=True)
    if not done.stdout.strip():
        raise ValueError(done.stderr.strip() or "exit code %d" % done.returncode)
    return done.stdout


def decode(question):
    side = ["--from", question["from"]] if question["from"] else []
    arguments = ["decode", question["format"], "--json", "--hex", question["hex"], *side]
    message = json.loads(run(arguments))
    return {"error": message["error"]} if "error" in message else {"message": message}


def encode(question):
    side = ["--from", question["from"]] if question["from"] else []
    given = json.dumps(question["message"])
    return {"hex": run(["encode", question["format"], "--hex", *side], given).strip()}


def answer(question):
    try:
        return decode(question) if question["do"] == "decode" else encode(question)
    except ValueError as error:
        return {"error": str(error)}


for line in sys.stdin:
    question = json.loads(line)
    print(json.dumps({"id": question["id"], **answer(question)}), flush=True)
