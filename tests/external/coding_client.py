"""Lets a real coding client, opencode, use `assistant-host` as a person would: `setup opencode --write`, then a task.

usage: coding_client.py FOLDER BINARY [--show]

FOLDER has opencode in its node_modules. Its model is played here, on 127.0.0.1, in the format of chat completions: it
searches for an assistant with the tools that it is given, spawns what it found, and tells the result. Prints a line
`ok NAME` or `FAIL NAME: WHY` for each check, with --show also what was said; ends with 1 if one failed.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
RUN_SECS_MAX = 100
SHOWN_CHARS_MAX = 160
TASK = "Have the changelog of the new version written."
NAME = "assistants"


class Played(http.server.BaseHTTPRequestHandler):
    """The model. What it says next follows from how many results of tools it has been given."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tools = [tool["function"]["name"] for tool in asked.get("tools", [])]
        results = [message for message in asked["messages"] if message["role"] == "tool"]
        if tools:
            self.server.asked.append({"tools": tools, "results": [text_of(message) for message in results]})
        delta = says(tools, [text_of(message) for message in results])
        finish = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = [({"role": "assistant", **delta}, None), ({}, finish)]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for delta, finish in chunks:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "played", "choices": [choice]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, *_):
        pass


def text_of(message):
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def says(tools, results):
    ours = {tool.removeprefix(f"{NAME}_"): tool for tool in tools if tool.startswith(f"{NAME}_")}
    if not ours:
        return {"content": "Changelog"}
    if not results:
        return call(ours["search_assistant"], query="write the changelog of the new version")
    if len(results) == 1:
        found = json.loads(results[0])["items"][0]["assistant_id"]
        return call(ours["spawn_assistant"], assistant_id=found, query=TASK, run_mode="sync")
    return {"content": "The assistant says: " + json.loads(results[1])["result"]["content"]}


def call(tool, **arguments):
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"call_{tool}", "type": "function", "function": function}]}


class Bed:
    """A home of its own, with a configuration of opencode that has a comment and a model, and our program set up."""

    def __init__(self, folder, binary, home, port, show):
        self.opencode = folder / "node_modules/opencode-linux-x64-baseline/bin/opencode"
        self.binary, self.show = binary, show
        self.places = ["--state", home / "state", "--config", FIXTURES / "config.toml", "--no-project"]
        self.places += ["--assistants", FIXTURES / "assistants"]
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "TMPDIR")}
        never = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"]
        self.env = {**kept, "HOME": str(home), **{f"OPENCODE_DISABLE_{what}": "1" for what in never}}
        self.file = home / ".config/opencode/opencode.json"
        self.file.parent.mkdir(parents=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "none"},
            "models": {"played": {"tool_call": True}},
        }
        settings = json.dumps({"model": "fake/played", "provider": {"fake": provider}}, indent=2)
        self.file.write_text("// kept\n" + settings + "\n")
        self.project = home / "project"
        self.project.mkdir()

    def run(self, *command):
        """What a command prints. It has to succeed."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words,
            cwd=self.project,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECS_MAX,
        )
        if self.show:
            shown = " ".join([pathlib.Path(words[0]).name, *words[1:]])
            print(f"$ {shown}", *(done.stdout + done.stderr).splitlines(), sep="\n  ")
        assert done.returncode == 0, f"{words} ended with {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}"
        return done.stdout + done.stderr

    def ours(self, *command):
        return self.run(self.binary, *command, *self.places)


def is_set_up(bed, _model):
    bed.ours("setup", "opencode", "--write")
    text = bed.file.read_text()
    assert text.startswith("// kept\n") and '"fake/played"' in text and f'"{NAME}"' in text, text
    listed = json.loads(bed.ours("setup", "--list", "--json"))["clients"]
    assert [one["state"] for one in listed if one["client"] == "opencode"] == ["there"], listed


def is_connected(bed, _model):
    told = bed.run(bed.opencode, "mcp", "list")
    assert NAME in told and "connected" in told and "failed" not in told, told


def answers_with_the_result(bed, model):
    told = bed.run(bed.opencode, "run", TASK)
    if bed.show:
        for asked in model.asked:
            last = (asked["results"] or [""])[-1]
            print(f"  the model was given {len(asked['tools'])} tools, and last: {last[:SHOWN_CHARS_MAX]}")
    assert "The assistant says: " in told, told


def was_given_our_tools(bed, model):
    ours = {f"{NAME}_{tool['name']}" for tool in json.loads(bed.ours("tools", "--json"))["tools"]}
    given = {tool for tool in model.asked[0]["tools"] if tool.startswith(f"{NAME}_")}
    assert given == ours, given ^ ours


def searched_and_spawned(bed, model):
    found, spawned = (json.loads(result) for result in model.asked[-1]["results"])
    assert found["items"][0]["assistant_id"] == "release-notes-writer", found
    assert spawned["status"] == "finished" and spawned["assistant_id"] == "release-notes-writer", spawned
    bed.ours("status")


CHECKS = [is_set_up, is_connected, answers_with_the_result, was_given_our_tools, searched_and_spawned]


def main(folder, binary, *options):
    failed, show = 0, "--show" in options
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Played)
    model.asked = []
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        bed = Bed(pathlib.Path(folder).resolve(), binary, pathlib.Path(home), model.server_address[1], show)
        try:
            for check in CHECKS:
                try:
                    check(bed, model)
                    print(f"ok   {check.__name__}", flush=True)
                except Exception as error:
                    failed += 1
                    why = f"{type(error).__name__}: {error}".replace("\n", " ")
                    print(f"FAIL {check.__name__}: {why}", flush=True)
        finally:
            bed.ours("stop", "--force")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
