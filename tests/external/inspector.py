"""Drives `assistant-host mcp` with the MCP inspector's command line: the SDK that most clients are written with.

usage: inspector.py FOLDER BINARY

FOLDER has the inspector in its node_modules. Prints a line `ok NAME` or `FAIL NAME: WHY` for each check; ends with 1
if one failed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
RUN_SECS_MAX = 120
OUTPUT_CHARS_MAX = 1_000
OK, TOOL_ERROR = 0, 5
LOAD = {"requests": 300, "concurrency": 10}


def call(tool, arguments):
    return ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), "-q"]


def has_no_warning(out, talk):
    _, *warnings = talk.split("Warning:")
    assert json.loads(out)["tools"] and not warnings, f"{len(warnings)} warnings; the first: {warnings[0]}"


def found(out, _talk):
    result = json.loads(out)["result"]
    assert result["structuredContent"]["items"][0]["assistant_id"] == "release-notes-writer", result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result


def finished(out, _talk):
    result = json.loads(out)["result"]["structuredContent"]
    assert result["status"] == "finished" and result["result"]["content"], result


def is_told_by_code(out, talk):
    assert "unknown_assistant" in out + talk and "change-reviewer" in out + talk, out + talk


def bore_the_load(out, _talk):
    load = json.loads(out)
    assert (load["ok"], load["errors"], load["toolErrors"]) == (LOAD["requests"], 0, 0), load


SEARCH = {"query": "write the changelog of the new version"}
SPAWN = {"assistant_id": "release-notes-writer", "query": "Do it.", "run_mode": "sync"}
# A name, the inspector's options, the exit code, and what has to hold of what it prints.
CHECKS = [
    ("lists_without_a_warning", ["--method", "tools/list", "--strict"], OK, has_no_warning),
    ("finds_by_task", [*call("search_assistant", SEARCH), "--format", "json"], OK, found),
    ("waits_for_a_result", [*call("spawn_assistant", SPAWN), "--format", "json"], OK, finished),
    ("takes_an_error_as_one", call("list_assistant", {"assistant_id": "change-reviewr"}), TOOL_ERROR, is_told_by_code),
    (
        "bears_load",
        [
            *call("search_assistant", SEARCH),
            *["--load", "--load-requests", str(LOAD["requests"]), "--load-concurrency", str(LOAD["concurrency"])],
        ],
        OK,
        bore_the_load,
    ),
]


def run(folder, binary, era, options, code, holds):
    with tempfile.TemporaryDirectory() as home:
        server = ["mcp", "--state", f"{home}/state", "--config", str(FIXTURES / "config.toml")]
        server += ["--assistants", str(FIXTURES / "assistants")]
        servers = pathlib.Path(home) / "mcp.json"
        servers.write_text(json.dumps({"mcpServers": {"assistants": {"command": binary, "args": server}}}))
        inspector = [folder / "node_modules/.bin/mcp-inspector", "--cli", "--config", servers, "--server", "assistants"]
        done = subprocess.run(
            [*inspector, "--protocol-era", era, *options],
            env=os.environ | {"HOME": home, "MCP_INSPECTOR_SECRET_STORE": "memory"},
            cwd=home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_SECS_MAX,
        )
        # The host would go on without clients.
        subprocess.run([binary, "stop", "--force", "--state", f"{home}/state"], check=True, stderr=subprocess.DEVNULL)
    said = (done.stdout + done.stderr)[:OUTPUT_CHARS_MAX]
    assert done.returncode == code, f"ended with {done.returncode} instead of {code}: {said}"
    holds(done.stdout, done.stderr)


def main(folder, binary):
    failed = 0
    for era in ("legacy", "modern"):
        for name, options, code, holds in CHECKS:
            try:
                run(folder, binary, era, options, code, holds)
                print(f"ok   {era}: {name}", flush=True)
            except (AssertionError, ValueError, LookupError, subprocess.TimeoutExpired) as error:
                print(f"FAIL {era}: {name}: {' '.join(str(error).split())}", flush=True)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]))
