"""A hook for the benchmark: forwards messages, or replaces their fields."""

import json
import sys

order, what = int(sys.argv[1]), sys.argv[2]


def say(**line):
    print(json.dumps(line), flush=True)


say(type="hello", version=1, subscriptions=[{"id": "all", "filter": "file.*", "order": order}])
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] != "message":
        continue
    if what == "forward":
        say(type="answer", id=message["id"], do="forward")
        continue
    fields = message["fields"]
    fields["transId"] += 1
    say(type="answer", id=message["id"], do="replace", fields=fields)
