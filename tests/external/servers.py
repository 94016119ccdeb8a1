"""Lets assistants use real tool servers, from npm and PyPI: through `BINARY`, as a person would start it.

usage: servers.py NODE_FOLDER PYTHON_FOLDER BINARY

NODE_FOLDER has the servers of `servers/package.json` in its node_modules, PYTHON_FOLDER is an environment with
mcp-server-time. The model is a script; the servers are real. Prints a line `ok NAME` or `FAIL NAME: WHY` for each check;
ends with 1 if one failed.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RUN_SECS_MAX = 120
TOGETHER = 50
# Commands of an assistant that may run echo: the first two are, each other one would steal.
HELD = [
    "echo fine",
    "echo one && echo 'a; b'",
    "echo a; touch stolen-1",
    "echo $(touch stolen-2)",
    "echo a | tee stolen-3",
    "echo a > stolen-4",
    "touch stolen-5",
]
# `npx -y PACKAGE@VERSION ARGUMENT...`, out of what the lockfile has brought: nothing is downloaded.
NPX = """#!/bin/sh
set -e
[ "$1" = -y ]
name=${{2%@*}}
found=$({node} -p 'const p = require(process.argv[1]); p.version + " " + Object.values(p.bin)[0]' "{modules}/$name/package.json")
[ "${{found%% *}}" = "${{2##*@}}" ]
shift 2
exec {node} "{modules}/$name/${{found#* }}" "$@"
"""


class Bed:
    """A home with a project, a configuration of all servers, and assistants that a script plays."""

    def __init__(self, node_folder, python_folder, binary, home):
        self.binary, self.home = binary, home
        self.project = home / "project"
        self.assistants, self.state = home / "assistants", home / "state"
        for folder in (self.project, self.assistants, home / "bin"):
            folder.mkdir()
        (home / "outside.txt").write_text("not for assistants")
        node, modules = shutil.which("node"), node_folder / "node_modules"
        npx = home / "bin/npx"
        npx.write_text(NPX.format(node=node, modules=modules))
        npx.chmod(0o755)
        servers = {
            "everything": [node, modules / "@modelcontextprotocol/server-everything/dist/index.js"],
            "memory": [node, modules / "@modelcontextprotocol/server-memory/dist/index.js"],
            "thinking": [node, modules / "@modelcontextprotocol/server-sequential-thinking/dist/index.js"],
            "time": [python_folder / "bin/mcp-server-time"],
        }
        lines = ['default_model = "s"', 'tool_presets = ["filesystem", "shell"]', "[models.s]", 'provider = "scripted"']
        lines += ['script = "script.json"', "[limits]", f"running_per_session = {TOGETHER}"]
        for name, (command, *args) in servers.items():
            lines += [f"[mcp_servers.{name}]", f"command = {json.dumps(str(command))}"]
            lines += [f"args = {json.dumps([str(arg) for arg in args])}"]
            if name == "memory":
                # It writes into its own package unless it is told.
                lines += [f"env = {{ MEMORY_FILE_PATH = {json.dumps(str(home / 'memory.jsonl'))} }}"]
        (home / "config.toml").write_text("\n".join(lines) + "\n")
        self.env = {key: value for key, value in os.environ.items() if key in ("LANG", "TMPDIR")}
        self.env |= {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "OPENAI_API_KEY": "sk-secret"}

    def populate(self):
        """The assistants, each with the calls that it makes; it tells what came of the last."""
        notes, outside = str(self.project / "notes.txt"), str(self.home / "outside.txt")
        edits = [{"oldText": "second", "newText": "2nd"}]
        line = "echo $((6 * 7)) in $(pwd), $(env | grep -c sk-secret) secrets"
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
        thought = {"thought": "t", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
        noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        calls = {
            "writer": [
                ("filesystem__write_file", {"path": notes, "content": "first line\nsecond line\n"}),
                ("filesystem__edit_file", {"path": notes, "edits": edits}),
                ("filesystem__read_text_file", {"path": notes}),
            ],
            "curious": [("filesystem__read_text_file", {"path": outside})],
            "commander": [("shell__run_command", {"command": line})],
            "sleeper": [("shell__run_command", {"command": "sleep 43210; echo late > late.txt"})],
            "sum": [("everything__get-sum", {"a": 20, "b": 22})],
            "image": [("everything__get-tiny-image", {})],
            "data": [("everything__get-structured-content", {"location": "Chicago"})],
            "links": [("everything__get-resource-links", {"count": 2})],
            "long": [("everything__trigger-long-running-operation", {"duration": 1, "steps": 4})],
            "learner": [("memory__create_entities", {"entities": [entity]})],
            "teller": [("memory__read_graph", {})],
            "thinker": [("thinking__sequentialthinking", thought)],
            "clock": [("time__convert_time", noon)],
            "echo": [("everything__echo", {"message": "hallo"})],
            "held": [
                ("filesystem__read_text_file", {"path": notes}),
                ("filesystem__read_text_file", {"path": str(self.project / "secret.txt")}),
                ("filesystem__edit_file", {"path": notes, "edits": edits}),
                *[("shell__run_command", {"command": command}) for command in HELD],
            ],
        }
        rules = {"held": 'tools: ["mcp__filesystem__*", "Bash(echo:*)"]\ndisallowedTools: ["Read(secret.txt)", Edit]\n'}
        (self.project / "secret.txt").write_text("not for all assistants")
        script = []
        for name, made in calls.items():
            servers = ", ".join(sorted({tool.split("__")[0] for tool, _ in made}))
            keys = f"name: {name}\ndescription: It is {name}.\nmcpServers: [{servers}]\n{rules.get(name, '')}"
            text = f"---\n{keys}---\nYou are {name}.\n"
            (self.assistants / f"{name}.md").write_text(text)
            steps = [{"tool_calls": [{"tool_name": tool, "arguments": arguments}]} for tool, arguments in made]
            script.append({"when": {"system": f"You are {name}."}, "steps": [*steps, {"text": "{{result}}"}]})
        (self.home / "script.json").write_text(json.dumps({"assistants": script}))
        self.ours("trust", "--all")

    def ours(self, *command, ok=True):
        places = ["--state", self.state, "--config", self.home / "config.toml", "--project", self.project]
        words = [str(word) for word in [self.binary, *command, *places, "--assistants", self.assistants]]
        done = subprocess.run(
            words, cwd=self.home, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECS_MAX
        )
        said = f"{command} ended with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}"
        assert not ok or done.returncode == 0, said
        return done.stdout

    def spawn(self, name):
        return json.loads(self.ours("spawn", "--json", "--assistant", name, "go").splitlines()[0])["process_id"]

    def result(self, name):
        return self.ours("spawn", "--wait", "--json", "--assistant", name, "go")

    def log(self, process):
        return [json.loads(line) for line in self.ours("logs", process, "--json").splitlines()]

    def servers(self, package):
        """The processes of our host that run a package: node or Python itself, not what has started it."""
        mark, found = f"ASSISTANT_SERVER_OF={self.state}".encode(), []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
                if package.encode() in command and mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                pass
        return found


def until(what, look):
    end = time.monotonic() + RUN_SECS_MAX
    while not look():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


def all_of_them_start(bed):
    told = json.loads(bed.ours("tools", "--servers", "--json"))["servers"]
    offered = {one["name"]: {tool["tool"] for tool in one["tools"] or []} for one in told}
    assert {"read_text_file", "write_file", "edit_file"} <= offered["filesystem"], told
    assert offered["shell"] == {"run_command"}, told
    assert "echo" in offered["everything"] and "read_graph" in offered["memory"], told
    assert offered["thinking"] == {"sequentialthinking"} and "convert_time" in offered["time"], told
    report = json.loads(bed.ours("doctor", "--json"))
    assert report["ok"] and all(one["error"] is None for one in report["servers"]), report


def an_assistant_reads_and_writes_files(bed):
    assert "2nd line" in bed.result("writer")
    assert (bed.project / "notes.txt").read_text() == "first line\n2nd line\n"


def a_path_outside_is_refused(bed):
    told = bed.result("curious")
    assert "denied" in told and "not for assistants" not in told, told


def a_command_is_run_without_our_keys(bed):
    told = bed.result("commander")
    assert f"42 in {bed.project}" in told and "0 secrets" in told, told


def a_command_ends_with_its_assistant(bed):
    process = bed.spawn("sleeper")
    until("it sleeps", lambda: bed.servers("43210"))
    bed.ours("cancel", process)
    until("it is gone", lambda: not bed.servers("43210"))
    assert not (bed.project / "late.txt").exists()


def a_denied_call_is_refused(bed):
    process = json.loads(bed.result("held").splitlines()[0])["process_id"]
    log = bed.log(process)
    refused = [event["data"] for event in log if event["kind"] == "refused"]
    results = [event["data"] for event in log if event["kind"] == "tool_result"]
    # All but the notes and the first two commands: the edit is no tool of it at all.
    assert len(refused) == len(HELD), (refused, results)
    assert sum(not one["is_error"] for one in results) == 3, results
    assert all("not permitted" in one["rule"] for one in refused if one["tool"] == "shell__run_command"), refused
    assert not list(bed.project.glob("stolen*")), list(bed.project.iterdir())


def everything_is_passed_on(bed):
    assert "42" in bed.result("sum")
    assert "finished" in bed.result("image")
    assert "temperature" in bed.result("data")
    assert "demo://resource" in bed.result("links")


def progress_is_that_of_the_process(bed):
    process = json.loads(bed.result("long").splitlines()[0])["process_id"]
    kinds = [event["kind"] for event in bed.log(process)]
    assert "progress" in kinds, kinds


def memory_is_shared(bed):
    bed.result("learner")
    assert "wrote the first program" in bed.result("teller")


def thoughts_and_time(bed):
    assert "thoughtNumber" in bed.result("thinker")
    assert "21:00" in bed.result("clock")


def fifty_share_one(bed):
    processes = [bed.spawn("echo") for _ in range(TOGETHER)]
    for process in processes:
        until("it ends", lambda: ended(bed, process))
    assert len(bed.servers("server-everything")) == 1, bed.servers("server-everything")


def ended(bed, process):
    statuses = [event["data"]["status"] for event in bed.log(process) if event["kind"] == "status"]
    assert "failed" not in statuses, bed.log(process)
    return "finished" in statuses


def a_killed_one_comes_back(bed):
    [before] = bed.servers("server-everything")
    os.kill(before, signal.SIGKILL)
    assert "hallo" in bed.result("echo")
    [after] = bed.servers("server-everything")
    assert after != before


def nothing_is_left(bed):
    assert bed.servers("server-everything")
    bed.ours("stop", "--force")
    packages = ["server-everything", "server-memory", "server-filesystem", "mcp-server-commands", "mcp-server-time"]
    left = {package: bed.servers(package) for package in packages}
    assert not any(left.values()), left


CHECKS = [
    all_of_them_start,
    an_assistant_reads_and_writes_files,
    a_path_outside_is_refused,
    a_command_is_run_without_our_keys,
    a_command_ends_with_its_assistant,
    a_denied_call_is_refused,
    everything_is_passed_on,
    progress_is_that_of_the_process,
    memory_is_shared,
    thoughts_and_time,
    fifty_share_one,
    a_killed_one_comes_back,
    nothing_is_left,
]


def main(node_folder, python_folder, binary):
    failed = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        folders = [pathlib.Path(folder).resolve() for folder in (node_folder, python_folder)]
        bed = Bed(*folders, binary, pathlib.Path(home).resolve())
        try:
            bed.populate()
            for check in CHECKS:
                try:
                    check(bed)
                    print(f"ok   {check.__name__}", flush=True)
                except Exception as error:
                    failed += 1
                    why = f"{type(error).__name__}: {error}".replace("\n", " ")
                    print(f"FAIL {check.__name__}: {why}", flush=True)
        finally:
            bed.ours("stop", "--force", ok=False)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
