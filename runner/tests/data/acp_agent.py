#!/usr/bin/env python3
"""An agent of the Agent Client Protocol that does as its first argument says, well or badly.

It writes each line that it gets into the file that its second argument names.
"""
import json
import os
import subprocess
import sys
import time

MODE, LOG = sys.argv[1], open(sys.argv[2], "a", buffering=1)
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
SESSION = "s1"
last_id = 0
prompts = 0
CHILD = None


def raw(data):
    stdout.write(data)
    stdout.flush()


def send(message):
    raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def read():
    line = stdin.readline()
    if not line:
        sys.exit(0)
    LOG.write(line.decode())
    return json.loads(line)


def answer(message, result):
    send({"id": message["id"], "result": result})


def refuse(message, code, text, **more):
    send({"id": message["id"], "error": {"code": code, "message": text, **more}})


def update(session=SESSION, **what):
    send({"method": "session/update", "params": {"sessionId": session, "update": what}})


def say(text, **more):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}, **more)


def think(text):
    update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": text})


def call(id, title, **more):
    update(sessionUpdate="tool_call", toolCallId=id, title=title, **more)


def called(id, status="completed", text=None, **more):
    if text is not None:
        more["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
    update(sessionUpdate="tool_call_update", toolCallId=id, status=status, **more)


def ask(method, params):
    """Asks, and gives the answer; other things that come meanwhile are handled."""
    global last_id
    last_id += 1
    mine = "a%d" % last_id
    send({"id": mine, "method": method, "params": params})
    while True:
        message = read()
        if "method" in message:
            handle(message)
        elif message["id"] == mine:
            return message.get("result", message.get("error"))


ONCE = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permission(id, options=ONCE, session=SESSION, **more):
    params = {"sessionId": session, "toolCall": {"toolCallId": id, **more}, "options": options}
    outcome = ask("session/request_permission", params)["outcome"]
    return outcome.get("optionId", outcome["outcome"])


def shell(id, command):
    """A command of a shell, for which permission is asked."""
    call(id, "`%s`" % command, kind="execute", status="pending", rawInput={})
    may = permission(id, title="`%s`" % command, kind="execute", rawInput={"command": command})
    if may == "yes":
        called(id, text="ran " + command)
    else:
        called(id, "failed", text="was not allowed: " + may)


def child():
    """Something that the agent has started, and that does not listen."""
    global CHILD
    CHILD = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, start_new_session=True)


def end(message, reason="end_turn", **more):
    answer(message, {"stopReason": reason, **more})


def prompt(message):
    global prompts, waiting
    prompts += 1
    text = "\n".join(block.get("text", block["type"]) for block in message["params"]["prompt"])
    if MODE == "well":
        think("Hm, ")
        think("a task.")
        say("I ")
        say("look.")
        shell("c1", "ls -l")
        entries = [("Look", "completed"), ("Think", "in_progress"), ("Write", "pending")]
        entries = [{"content": what, "status": status, "priority": "high"} for what, status in entries]
        update(sessionUpdate="plan", entries=entries)
        say("All ")
        say("is well.")
        update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.5 * prompts, "currency": "USD"})
        usage = {"totalTokens": 18, "inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3}
        end(message, usage=usage)
    elif MODE in ("echo", "no-servers"):
        say(text)
        end(message)
    elif MODE == "junk":
        raw(b"Loading...\n\n   \n\xff\xfe\x00binary\n[1,2]\n[]\nnull\n7\n\"x\"\n{}\n{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}\n")
        raw(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":\n")
        raw(b"[" * 100_000 + b"\n")
        raw(b"{\"jsonrpc\":\"2.0\",\"method\":7}\n{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"x\"}\n")
        say("still here")
        end(message)
    elif MODE == "long-line":
        say("x" * (9 * 1024 * 1024))
        say("short")
        end(message)
    elif MODE == "longest-line":
        say("x" * (33 * 1024 * 1024))
        end(message)
    elif MODE == "no-newline":
        raw(b"x" * (33 * 1024 * 1024))
        time.sleep(1000)
    elif MODE == "unknown-methods":
        told = []
        for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create", "no/such"]:
            told.append("%s %d" % (method, ask(method, {"sessionId": SESSION, "path": "/etc/passwd"})["code"]))
        told.append("no params %d" % ask("session/request_permission", {})["code"])
        told.append("a list %d" % ask("no/such", [1])["code"])
        send({"method": "no/such", "params": {}})
        send({"method": "$/cancel_request", "params": {"id": 77}})
        send({"method": "$/cancel_request"})
        say("; ".join(told))
        end(message)
    elif MODE == "after-the-end":
        if prompts == 1:
            end(message)
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "too late"})
            send({"id": "late", "method": "session/request_permission", "params": {
                "sessionId": SESSION, "toolCall": {"toolCallId": "c9", "title": "late"}, "options": ONCE}})
        else:
            say("second")
            end(message)
    elif MODE == "foreign":
        update(session="s2", sessionUpdate="agent_message_chunk", content={"type": "text", "text": "not mine"})
        update(session="", sessionUpdate="agent_message_chunk", content={"type": "text", "text": "nobody's"})
        say("mine; the other one is " + permission("c1", session="s2", title="foreign"))
        end(message)
    elif MODE == "answers-twice":
        answer({"id": 99}, {})
        answer({"id": "never"}, {"stopReason": "refusal"})
        refuse({"id": None}, -1, "nobody")
        say("once")
        end(message)
        end(message, "refusal")
        refuse(message, -32603, "no")
    elif MODE == "unfit":
        update(sessionUpdate="moon_update", phase="full")
        update(sessionUpdate="tool_call")
        update(sessionUpdate="agent_message_chunk", content={"type": "hologram"})
        send({"method": "session/update", "params": {"sessionId": 7}})
        send({"method": "session/update"})
        update(sessionUpdate="usage_update", used=-1, size="big", cost={"amount": "much"})
        update(sessionUpdate="plan", entries=[])
        say("fits")
        end(message, usage={"inputTokens": -5, "outputTokens": "many", "totalTokens": 1.5})
    elif MODE in ("not-understood", "mute"):
        if MODE == "not-understood":
            update(sessionUpdate="moon_update", phase="full")
        sys.stderr.write("one\nno key\n")
        sys.stderr.flush()
        # Until that is read.
        time.sleep(2)
        end(message)
    elif MODE.startswith("ends-"):
        say("so far")
        end(message, MODE[len("ends-"):])
    elif MODE == "no-reason":
        answer(message, {})
    elif MODE == "fails":
        refuse(message, -32603, "Internal error", data={"details": "the model is on holiday"})
    elif MODE == "exits":
        child()
        say("I begin")
        call("c1", "work", status="in_progress")
        sys.stderr.write("one\nTraceback: the moon\n")
        sys.stderr.flush()
        os._exit(3)
    elif MODE == "leaves":
        # What it has started holds its output open.
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
        os._exit(5)
    elif MODE == "killed":
        os.kill(os.getpid(), 9)
    elif MODE == "closes":
        os.close(1)
        time.sleep(1000)
    elif MODE == "between":
        say("turn %d of %d" % (prompts, os.getpid()))
        end(message)
        if not os.path.exists(sys.argv[2] + ".died"):
            open(sys.argv[2] + ".died", "w").close()
            sys.stderr.write("I die now\n")
            sys.stderr.flush()
            os._exit(4)
    elif MODE == "spends":
        update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.5, "currency": "USD"})
        while not os.path.exists(sys.argv[2] + ".go"):
            time.sleep(0.01)
        say("done")
        # Less than what is worth a word by itself, and more.
        update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.505, "currency": "USD"})
        update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 0.75, "currency": "USD"})
        end(message)
    elif MODE == "junk-later":
        raw(b"junk\n" * 20_000)
        end(message)
    elif MODE == "no-options":
        told = [permission("c1", options=[], kind="execute", rawInput={"command": "ls"})]
        told.append(permission("c2", options=ONCE[:1], kind="execute", rawInput={"command": "ls"}))
        say(", ".join(told))
        end(message)
    elif MODE == "refused":
        shell("c1", "rm -rf /")
        end(message)
    elif MODE == "asks-twice":
        told = [permission("c1", title="ls", kind="execute", rawInput={"command": "ls"})]
        told.append(permission("c1"))
        called("c1")
        called("c1", "failed", text="again")
        told.append(permission("c1", title="rm", kind="execute", rawInput={"command": "rm"}))
        say(", ".join(told))
        end(message)
    elif MODE == "files":
        locations = [{"path": "/w/a"}, {"path": "/etc/passwd"}]
        say(permission("c1", title="Edit a", kind="edit", rawInput={"path": "/w/a"}, locations=locations))
        end(message)
    elif MODE == "ours":
        call("c1", "mcp__assistants__ask_parent", status="in_progress", rawInput={"question": "?"})
        told = [permission("c1"), permission("c2", title="assistants_ask_parent", kind="other")]
        told.append(permission("c3", title="mcp__assistants__ask_parent", kind="execute"))
        called("c1", text="answered")
        called("c2", text="answered")
        say(", ".join(told))
        end(message)
    elif MODE == "never-done":
        called("c0", "in_progress", title="began in the middle")
        call("c1", "never", status="pending")
        called("c2", text="ended at once", title="no beginning")
        call("x" * 5000, "long id", status="in_progress")
        call("", "no id", status="in_progress")
        say("done")
        end(message)
    elif MODE == "waits":
        # It does not answer as long as nobody cancels.
        child()
        say("working")
        call("c1", "work", status="in_progress")
        waiting = message
    elif MODE == "hesitates":
        say("one ")
        # Until what it has said is told.
        time.sleep(8)
        say("and two")
        waiting = message
    elif MODE == "deaf":
        # It answers nothing any more, whatever comes.
        child()
        say("working")
        while True:
            read()
    elif MODE == "asks-and-waits":
        say("asking")
        say("it was " + permission("c1", kind="execute", rawInput={"command": "ls"}))
        end(message, "cancelled")
    elif MODE == "flood":
        for at in range(16_000):
            say("x" * 1250, messageId="m%d" % (at // 4_000))
        end(message)
    elif MODE == "floods-calls":
        for at in range(10_500):
            call("c%d" % at, "call", status="pending")
        say("flooded")
        end(message)
    elif MODE == "hoards":
        # Calls that never end, of 9 MB each.
        for at in range(20):
            call("c%d" % at, "hoard", kind="execute", status="pending", rawInput={"command": "x" * (9 * 1024 * 1024)})
        say(", ".join(permission("c%d" % at) for at in (0, 19)))
        end(message)
    elif MODE == "floods-requests":
        # None of the answers is read before all are asked.
        for at in range(400):
            send({"id": "f%d" % at, "method": "no/such", "params": {}})
        for at in range(400):
            read()
        say("all answered")
        end(message)
    elif MODE == "does-not-read":
        while True:
            send({"id": 1, "method": "no/such", "params": {}})
    else:
        refuse(message, -32601, "no such mode")


waiting = None


def handle(message):
    method = message.get("method")
    if method == "initialize":
        if MODE == "silent":
            child()
            time.sleep(1000)
        if MODE == "junk-first":
            raw(b"junk\n" * 20_000)
        if MODE == "exits-at-once":
            sys.stderr.write("usage: agent --acp\n")
            sys.exit(2)
        version = {"version-2": 2, "version-text": "1.0"}.get(MODE, 1)
        can = {"loadSession": MODE in ("echo", "between", "load-fails"), "promptCapabilities": {"image": MODE == "echo"}}
        methods = [{"id": "web", "name": "Log in with the web", "description": "Run `agent login`"}]
        answer(message, {"protocolVersion": version, "agentCapabilities": can, "authMethods": methods})
    elif method == "session/new":
        if MODE == "wants-login":
            return refuse(message, -32000, "Authentication required")
        if MODE == "no-servers" and message["params"]["mcpServers"]:
            return refuse(message, -32602, "Invalid params: mcpServers")
        if MODE == "no-session":
            return answer(message, {"modes": None})
        if MODE == "refuses-session":
            return refuse(message, -32603, "Internal error", data="no disk")
        modes = [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}, {"id": "yolo", "name": "YOLO"}]
        models = [{"value": "acme/big-1", "name": "Big 1"}, {"value": "acme/small-1", "name": "Small 1"}]
        option = {"id": "m", "name": "Model", "category": "model", "type": "select", "currentValue": "acme/big-1",
                  "options": models}
        answer(message, {"sessionId": SESSION, "configOptions": [option, {"what": "is this"}],
                         "modes": {"currentModeId": "yolo", "availableModes": modes}})
    elif method == "session/load":
        if MODE == "load-fails":
            return refuse(message, -32602, "Invalid params", data="no such session")
        update(sessionUpdate="user_message_chunk", content={"type": "text", "text": "earlier"})
        say("what I said earlier")
        update(sessionUpdate="usage_update", used=10, size=100, cost={"amount": 7.0, "currency": "USD"})
        answer(message, {})
    elif method in ("session/set_mode", "session/set_config_option"):
        answer(message, {"configOptions": []})
    elif method == "session/prompt":
        prompt(message)
    elif method == "session/cancel":
        if waiting is not None:
            end(waiting, "cancelled")
    elif "id" in message and method:
        refuse(message, -32601, "Method not found")


if MODE == "talks-first":
    send({"id": "early", "method": "session/request_permission", "params": {
        "sessionId": SESSION, "toolCall": {"toolCallId": "c0"}, "options": ONCE}})
    MODE = "echo"
while True:
    handle(read())
