"""The first day on a machine where somebody has a login of Claude Code and no key: no configuration, 150 agent files, and
the first useful answer; then the login is written down as what is used, and an assistant works in a git worktree.

usage: first_day.py FOLDER BINARY [--show]

FOLDER has the program `claude`; where it is not there, that is said. Its model is played here (see played.py). Prints a line
`ok NAME` or `FAIL NAME: WHY` for each step, and how long it took until the first answer; ends with 1 if one failed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import bed
import played

SUBJECTS = ["python", "rust", "sql", "css", "docker", "kubernetes", "terraform", "swift", "kotlin", "haskell"]
JOBS = [
    ("security-auditor", "Finds security holes: injection, missing checks of rights, leaked secrets"),
    ("test-writer", "Writes missing tests, for edge cases too"),
    ("performance-tuner", "Measures and makes slow code fast"),
    ("doc-writer", "Writes documentation, examples and changelogs"),
    ("refactorer", "Takes long functions apart without changing what they do"),
    ("migration-planner", "Plans moves to a new major version, step by step"),
    ("reviewer", "Reviews changes for bugs and unclear names"),
    ("debugger", "Finds the cause of a failure from its traces"),
    ("api-designer", "Designs interfaces that are hard to misuse"),
    ("release-manager", "Cuts releases, with notes and tags"),
    ("accessibility-expert", "Makes user interfaces work for everybody"),
    ("data-modeller", "Designs tables, indexes and their migrations"),
    ("on-call-helper", "Reads logs and dashboards when something is down"),
    ("dependency-updater", "Keeps dependencies up to date and safe"),
    ("mentor", "Explains code to people who are new to it"),
]
FIXER = """---
name: fixer
description: Changes one file.
tools: Bash, Read
isolation: worktree
---
You are a fixer.
"""


APP = []
"""The file that the task is about, once there is one."""


def says(tools, results, texts):
    """The model."""
    told = "\n".join(texts)
    if "Read" not in tools:
        return "ok"
    if "TASK-FIX" in told and not results:
        return "Bash", {"command": "echo fixed > fixed.txt && pwd", "description": "fixes"}
    if "security holes" in told and not results:
        return "Read", {"file_path": str(APP[0])}
    return f"I saw: {results[-1].strip()}" if results else "ok"


class Machine:
    """A home with nothing but a login, and a PATH with nothing but the agent and git."""

    def __init__(self, program, binary, home, url, show):
        self.binary, self.home, self.show = binary, home, show
        self.project = home / "work/shop"
        agents = self.project / ".claude/agents"
        agents.mkdir(parents=True)
        for subject in SUBJECTS:
            for job, what in JOBS:
                text = f"---\nname: {subject}-{job}\ndescription: {what}, in {subject} code.\ntools: Bash, Read, Grep\n"
                (agents / f"{subject}-{job}.md").write_text(f"{text}model: sonnet\n---\nYou are a {job} for {subject}.\n")
        # What the user's own definitions name is trusted; of the project's, shells are not before `trust`.
        (home / ".claude/agents").mkdir(parents=True)
        (home / ".claude/agents/fixer.md").write_text(FIXER)
        APP.append(self.project / "app.py")
        APP[0].write_text("query = 'SELECT * FROM t WHERE id = ' + request.id\n")
        path = home / "bin"
        path.mkdir()
        for name in ["git", "sh", "bash", "cat", "env"]:
            found = next((pathlib.Path(one, name) for one in os.environ["PATH"].split(":") if pathlib.Path(one, name).exists()), None)
            if found:
                (path / name).symlink_to(found)
        # It is led to the played model, which nothing else of the machine knows.
        (path / "claude").write_text(f'#!/bin/sh\nANTHROPIC_BASE_URL={url} exec {program} "$@"\n')
        (path / "claude").chmod(0o755)
        tokens = {"accessToken": "sk-ant-oat01-played", "refreshToken": "sk-ant-ort01-played", "expiresAt": 4102444800000}
        login = {"claudeAiOauth": tokens | {"scopes": ["user:inference", "user:profile"], "subscriptionType": "pro"}}
        (home / ".claude/.credentials.json").write_text(json.dumps(login))
        (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
        self.env = {"HOME": str(home), "PATH": str(path), "LANG": "C.UTF-8"}
        identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        for words in [["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "first"]]:
            subprocess.run(["git", *words], cwd=self.project, check=True, capture_output=True)

    def run(self, *words, code=0):
        """What a command says on stdout and stderr."""
        return bed.run([self.binary, *words], self.project, self.env, self.show, code)


def gives_the_first_useful_answer(machine):
    begun = time.monotonic()
    out, said = machine.run("run", "find security holes in a python web service")
    took = time.monotonic() - begun
    assert "I saw:" in out and "query = 'SELECT" in out, (out, said)
    assert "python-security-auditor" in said, said
    assert "no model is configured; using your login of Claude Code as the runner `claude`" in said, said
    print(f"     the first answer came after {took:.1f} s", flush=True)


def tells_what_it_uses(machine):
    out, _ = machine.run("doctor", "--no-calls")
    assert "using your login of Claude Code" in out and "there is no model" not in out, out
    out, _ = machine.run("status")
    assert "using your login of Claude Code" in out, out
    out, _ = machine.run("setup", "model", "--list")
    assert out.startswith("claude     ready"), out


def works_in_a_worktree(machine):
    out, _ = machine.run("run", "TASK-FIX: fix it", "--assistant", "fixer", "--json")
    ended = json.loads(out)
    assert "/worktrees/fixer-" in json.dumps(ended), ended
    assert not (machine.project / "fixed.txt").exists(), "it worked beside the worktree"
    until = time.monotonic() + 20
    while not (items := [one for one in json.loads(machine.run("worktrees", "--json")[0])["items"] if one["state"] == "kept"]):
        assert time.monotonic() < until, "it is not kept"
    assert items[0]["holds"] == "1 file that is not committed", items
    assert (pathlib.Path(items[0]["path"]) / "fixed.txt").exists(), items


def writes_the_login_down(machine):
    out, said = machine.run("setup", "model", "claude", "--write")
    assert "Claude Code answered in" in said, said
    config = (machine.home / ".config/assistant-host/config.toml").read_text()
    assert 'default_runner = "claude"' in config and 'agent = "claude"' in config, config
    out, said = machine.run("doctor", "--no-calls")
    assert "no model is configured" not in out, out


def goes_without_a_login(machine):
    for file in [".claude/.credentials.json", ".config/assistant-host/config.toml"]:
        (machine.home / file).unlink()
    machine.run("stop", "--force")
    _, said = machine.run("run", "find security holes", code=4)
    assert "`assistant-host setup model` sets one up" in said, said


STEPS = [
    gives_the_first_useful_answer,
    tells_what_it_uses,
    works_in_a_worktree,
    writes_the_login_down,
    goes_without_a_login,
]


def main(folder, binary, *words):
    program = pathlib.Path(folder).resolve() / "claude"
    if not program.exists():
        print(f"skip first day: claude is not in {folder}", flush=True)
        return 0
    model = played.Models(says)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        machine = Machine(program, pathlib.Path(binary).resolve(), pathlib.Path(home).resolve(), model.url, "--show" in words)
        try:
            return 1 if bed.failures(STEPS, machine) else 0
        finally:
            machine.run("stop", "--force", code=None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
