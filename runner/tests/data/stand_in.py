#!/usr/bin/env python3
"""A command-line agent that does what a file says, for tests of what reads it: standard library only.

The file is named behind `--play`; each of its lines is a list, done in order:

    ["out", "text"]        writes a line to stdout         ["err", "text"]       a line to stderr
    ["cat", "file"]        writes a file to stdout         ["errcat", "file"]    the same to stderr
    ["raw", "hex"]         writes bytes, without newline   ["fill", 1000]        so many letters, without newline
    ["flood", 1000]        so many bytes to stderr         ["close"]             closes stdout
    ["read"]               reads stdin to its end          ["note", "file"]      adds arguments, environment, what was read
    ["child", "own"]       starts a child that holds stdout and lives; "own": in a session of its own; "deaf": deaf to signals
    ["deaf"]               ignores SIGINT and SIGTERM      ["wait", "file"]      until there is this file
    ["touch", "file"]      makes a file                    ["hang"]              lives on
    ["exit", 3]            exits with this code            ["die", 9]            ends itself by a signal
    ["chat", "text"]       writes a line again and again   ["times", 9, "text"] writes a line so many times
    ["call", "tool", {}]  calls a tool of its MCP server, as Claude Code's
"""

import json
import os
import signal
import subprocess
import sys
import time

out = sys.stdout.buffer
read = b""


def write(data):
    out.write(data)
    out.flush()


def call(tool, arguments):
    with open(sys.argv[sys.argv.index("--mcp-config") + 1]) as config:
        server = json.load(config)["mcpServers"]["assistants"]
    command, env = [server["command"], *server["args"]], {**os.environ, **server["env"]}
    client = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "stand-in", "version": "1"}}
    for message in (
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ):
        client.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        client.stdin.flush()
    while json.loads(client.stdout.readline()).get("id") != 2:
        pass


def play(what, arg=None, more=None):
    global read
    if what == "out":
        write(arg.encode() + b"\n")
    elif what == "err":
        print(arg, file=sys.stderr, flush=True)
    elif what in ("cat", "errcat"):
        with open(arg, "rb") as file:
            data = file.read()
        if what == "cat":
            write(data)
        else:
            sys.stderr.buffer.write(data)
            sys.stderr.flush()
    elif what == "raw":
        write(bytes.fromhex(arg))
    elif what == "fill":
        chunk = b"x" * min(arg, 1 << 20)
        for _ in range(arg // len(chunk)):
            write(chunk)
    elif what == "flood":
        for _ in range(arg // 1000):
            sys.stderr.write("y" * 999 + "\n")
        sys.stderr.flush()
    elif what == "close":
        os.close(1)
    elif what == "read":
        read = sys.stdin.buffer.read()
    elif what == "note":
        note = {"args": sys.argv[1:], "env": dict(os.environ), "stdin": read.decode(), "cwd": os.getcwd()}
        with open(arg, "a") as file:
            file.write(json.dumps(note) + "\n")
    elif what == "child":
        program = "import time\ntime.sleep(1000)"
        if arg == "deaf":
            program = "import signal\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\n" + program
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL, start_new_session=arg == "own")
    elif what == "deaf":
        for one in (signal.SIGINT, signal.SIGTERM):
            signal.signal(one, signal.SIG_IGN)
    elif what == "wait":
        while not os.path.exists(arg):
            time.sleep(0.01)
    elif what == "touch":
        open(arg, "w").close()
    elif what == "chat":
        while True:
            write(arg.encode() + b"\n")
    elif what == "times":
        for _ in range(arg):
            out.write(more.encode() + b"\n")
        out.flush()
    elif what == "call":
        call(arg, more)
    elif what == "hang":
        while True:
            time.sleep(1000)
    elif what == "exit":
        os._exit(arg)
    elif what == "die":
        signal.signal(arg, signal.SIG_DFL) if arg != 9 else None
        os.kill(os.getpid(), arg)
    else:
        raise ValueError(what)


with open(sys.argv[sys.argv.index("--play") + 1]) as lines:
    for line in lines.read().splitlines():
        play(*json.loads(line))
