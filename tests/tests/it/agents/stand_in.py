"""Stands in for the program of a command-line agent: it plays a turn in the lines of JSON that the real one writes.

What it was started with is added to the file `told` beside it. Where the task has `uses: ` and a list of calls, it
makes them by the tools that it was given; where it has the word `ask`, it asks its parent. It says what was answered."""

import json
import os
import pathlib
import re
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


class Tools:
    """The one server of tools that it was given."""

    def __init__(self):
        (server,) = json.load(open(behind("--mcp-config")))["mcpServers"].values()
        self.number = 0
        self.started = subprocess.Popen(
            [server["command"], *server["args"]],
            env={**os.environ, **server.get("env", {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "stand-in", "version": "1"}}
        self.ask("initialize", client)
        self.send({"method": "notifications/initialized"})

    def send(self, line):
        self.started.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        self.started.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        for line in self.started.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.number:
                return answer.get("result") or {"content": [{"text": answer["error"]["message"]}]}
        sys.exit("the server of tools has ended")

    def call(self, tool, arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return result["content"][0]["text"]

    def end(self):
        self.started.stdin.close()
        self.started.wait()


def use(calls):
    """Makes these calls, `$thread` in them is its own thread; the names of its tools, and what each call gave, go into the
    file `used` beside it."""
    prompt = pathlib.Path(behind("--append-system-prompt-file")).read_text()
    thread = re.search(r"Your thread_id is ([-0-9a-f]+)", prompt)[1]
    tools = Tools()
    names = sorted(tool["name"] for tool in tools.ask("tools/list", {})["tools"])
    said = []
    for number, (tool, arguments) in enumerate(calls):
        arguments = json.loads(json.dumps(arguments).replace("$thread", thread))
        message(f"u{number}", [{"type": "tool_use", "id": f"u{number}", "name": f"mcp__assistants__{tool}", "input": arguments}])
        said.append(tools.call(tool, arguments))
        answered(f"u{number}", said[-1])
    tools.end()
    # The answer may be one to mail that has come meanwhile.
    told.with_name("used").write_text(json.dumps({"tools": names, "said": said}))
    return "I have used them."


say({"type": "system", "subtype": "init", "session_id": session, "model": "stand-in-1", "tools": []})
message(1, [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}])
answered("t1", "a.txt")
if "uses: " in prompt:
    text = use(json.JSONDecoder().raw_decode(prompt.split("uses: ")[1])[0])
elif "ask" in prompt:
    message(2, [{"type": "tool_use", "id": "t2", "name": "mcp__assistants__ask_parent", "input": {"question": "Which colour?"}}])
    tools = Tools()
    said = tools.call("ask_parent", {"question": "Which colour?"})
    tools.end()
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
