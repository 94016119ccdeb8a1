"""Stands in for the program of a command-line agent: it plays a turn in the lines of JSON that the real one writes.

What it was started with is added to the file `told` beside it. Where the task has the word `ask`, it asks its parent by the
tools that it was given, and says what that answered."""

import json
import os
import pathlib
import subprocess
import sys

args = sys.argv[1:]
prompt = sys.stdin.read()


def behind(name):
    return args[args.index(name) + 1] if name in args else None


session = behind("--resume") or "session-1"
told = pathlib.Path(__file__).with_name("told")
with told.open("a") as file:
    file.write(json.dumps({"args": args, "prompt": prompt, "env": sorted(os.environ), "cwd": os.getcwd()}) + "\n")


def say(line):
    print(json.dumps(line), flush=True)


def message(number, content):
    used = {"input_tokens": 10, "output_tokens": 2}
    inner = {"id": f"m{number}", "role": "assistant", "model": "stand-in-1", "content": content, "usage": used}
    say({"type": "assistant", "message": inner, "parent_tool_use_id": None, "session_id": session})


def answered(call, content):
    part = {"type": "tool_result", "tool_use_id": call, "content": content}
    say({"type": "user", "message": {"role": "user", "content": [part]}, "parent_tool_use_id": None, "session_id": session})


def ask():
    """Calls ask_parent of the one server that it was given."""
    (server,) = json.load(open(behind("--mcp-config")))["mcpServers"].values()
    started = subprocess.Popen(
        [server["command"], *server["args"]],
        env={**os.environ, **server.get("env", {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def send(line):
        started.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        started.stdin.flush()

    def call(number, method, params):
        send({"id": number, "method": method, "params": params})
        for line in started.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        sys.exit("the server of tools has ended")

    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "stand-in", "version": "1"}}
    call(1, "initialize", client)
    send({"method": "notifications/initialized"})
    result = call(2, "tools/call", {"name": "ask_parent", "arguments": {"question": "Which colour?"}})
    started.stdin.close()
    started.wait()
    return result["content"][0]["text"]


say({"type": "system", "subtype": "init", "session_id": session, "model": "stand-in-1", "tools": []})
message(1, [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}])
answered("t1", "a.txt")
if "ask" in prompt:
    message(2, [{"type": "tool_use", "id": "t2", "name": "mcp__assistants__ask_parent", "input": {"question": "Which colour?"}}])
    said = ask()
    answered("t2", said)
    text = f"The answer was: {said}"
else:
    text = "There is a.txt."
message(3, [{"type": "text", "text": text}])
usage = {"input_tokens": 30, "output_tokens": 6}
say({
    "type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": session, "num_turns": 2,
    "total_cost_usd": 0.02, "usage": usage,
})
