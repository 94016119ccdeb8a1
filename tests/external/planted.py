"""A server of tools over stdin and stdout that nobody should start: `planted.py NAME`. Its one tool is `planted_NAME`."""

import json
import sys

TOOL = {"name": "planted_" + sys.argv[1].replace("-", "_"), "description": "x", "inputSchema": {"type": "object"}}

for line in sys.stdin:
    try:
        asked = json.loads(line)
        method, request = asked["method"], asked["id"]
    except (ValueError, TypeError, KeyError):
        # What hooks are told, and notifications.
        continue
    if method == "initialize":
        server = {"name": sys.argv[1], "version": "1"}
        result = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": server}
    else:
        result = {"tools": [TOOL]} if method == "tools/list" else {}
    print(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}), flush=True)
