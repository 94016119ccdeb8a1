"""Lets a real coding client, opencode, use `assistant-host` as a person would: `setup opencode --write`, then a task.

usage: coding_client.py FOLDER BINARY [--show]

FOLDER has opencode in its node_modules. Its model is played here (see played.py): it
searches for an assistant with the tools that it is given, spawns what it found, and tells the result. Prints a line
`ok NAME` or `FAIL NAME: WHY` for each check, with --show also what was said; ends with 1 if one failed.
"""

import json
import os
import pathlib
import sys
import tempfile

import bed
import played

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
SHOWN_CHARS_MAX = 160
TASK = "Have the changelog of the new version written."
NAME = "assistants"


def says(tools, results, _texts):
    """The model: what it says next follows from how many results of tools it has been given."""
    ours = {tool.removeprefix(f"{NAME}_"): tool for tool in tools if tool.startswith(f"{NAME}_")}
    if not ours:
        return "Changelog"
    if not results:
        return ours["search_assistant"], {"query": "write the changelog of the new version"}
    if len(results) == 1:
        found = json.loads(results[0])["items"][0]["assistant_id"]
        return ours["spawn_assistant"], {"assistant_id": found, "query": TASK, "run_mode": "sync"}
    return "The assistant says: " + json.loads(results[1])["result"]["content"]


class Bed:
    """A home of its own, with a configuration of opencode that has a comment and a model, and our program set up."""

    def __init__(self, folder, binary, home, url, show):
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
            "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
            "models": {"played": {"tool_call": True}},
        }
        settings = json.dumps({"model": "fake/played", "provider": {"fake": provider}}, indent=2)
        self.file.write_text("// kept\n" + settings + "\n")
        self.project = home / "project"
        self.project.mkdir()

    def run(self, *command):
        """What a command prints. It has to succeed."""
        return "".join(bed.run(command, self.project, self.env, self.show))

    def ours(self, *command):
        return self.run(self.binary, *command, *self.places)


def is_set_up(client, _model):
    client.ours("setup", "opencode", "--write")
    text = client.file.read_text()
    assert text.startswith("// kept\n") and '"fake/played"' in text and f'"{NAME}"' in text, text
    listed = json.loads(client.ours("setup", "--list", "--json"))["clients"]
    assert [one["state"] for one in listed if one["client"] == "opencode"] == ["there"], listed


def is_connected(client, _model):
    told = client.run(client.opencode, "mcp", "list")
    assert NAME in told and "connected" in told and "failed" not in told, told


def answers_with_the_result(client, model):
    told = client.run(client.opencode, "run", TASK)
    if client.show:
        for asked in with_tools(model):
            last = (asked["results"] or [""])[-1]
            print(f"  the model was given {len(asked['tools'])} tools, and last: {last[:SHOWN_CHARS_MAX]}")
    assert "The assistant says: " in told, told


def with_tools(model):
    """What it was asked, titles apart."""
    return [asked for asked in model.asked if asked["tools"]]


def was_given_our_tools(client, model):
    ours = {f"{NAME}_{tool['name']}" for tool in json.loads(client.ours("tools", "--json"))["tools"]}
    given = {tool for tool in with_tools(model)[0]["tools"] if tool.startswith(f"{NAME}_")}
    assert given == ours, given ^ ours


def searched_and_spawned(client, model):
    found, spawned = (json.loads(result) for result in with_tools(model)[-1]["results"])
    assert found["items"][0]["assistant_id"] == "release-notes-writer", found
    assert spawned["status"] == "finished" and spawned["assistant_id"] == "release-notes-writer", spawned
    client.ours("status")


CHECKS = [is_set_up, is_connected, answers_with_the_result, was_given_our_tools, searched_and_spawned]


def main(folder, binary, *options):
    model = played.Models(says)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        client = Bed(pathlib.Path(folder).resolve(), binary, pathlib.Path(home), model.url, "--show" in options)
        try:
            return 1 if bed.failures(CHECKS, client, model) else 0
        finally:
            client.ours("stop", "--force")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
