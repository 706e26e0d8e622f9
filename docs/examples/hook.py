#!/usr/bin/env python3
"""Tells Uru clients that the server has their build, so that they do not update themselves."""

import json
import sys

BUILD = int(sys.argv[1]) if len(sys.argv) > 1 else 918


def say(**line):
    print(json.dumps(line), flush=True)


say(type="hello", version=1, name="same build", subscriptions=[
    {"id": "reply", "filter": "file.BuildIdReply"},
    {"id": "update", "filter": "file.BuildIdUpdate"},
])
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "error":
        print(message["text"], file=sys.stderr)
    if message["type"] != "message":
        continue
    if "update" in message["subscriptions"]:
        say(type="answer", id=message["id"], do="drop")
        continue
    fields = message["fields"]
    say(type="log", text=f"build {fields['buildId']} becomes {BUILD}")
    fields["buildId"] = BUILD
    say(type="answer", id=message["id"], do="replace", fields=fields)
