"""Lets real coding agents run assistants: each does a task with a tool of its own, asks whoever gave it the task through
the bridge, uses the answer, goes on where it ended, and is cancelled and killed without leaving anything behind.

usage: agents.py FOLDER BINARY [--show] [NAME...]

FOLDER has the programs: claude, codex, gemini, opencode; one that is not there is told as skipped. Their models are
played here (see played.py). Prints a line `ok NAME`, `skip NAME: WHY` or `FAIL NAME: WHY` for each check, with --show also
what was said; ends with 1 if one failed.
"""

import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

import bed
import played

GONE_SECS_MAX = 20
MARK = "ASSISTANT_PROCESS_ID="
"""Whatever an assistant's runner starts has it in its environment."""
SLEEPS = "sleep 7777"
SHELLS = {"Bash": "command", "bash": "command", "exec_command": "cmd", "run_shell_command": "command"}
"""What runs commands, by the agents' names, with the argument that is the command."""

WORKER = """---
name: Worker
description: Does the tasks of the test.
tools: [Bash, Read, ask_parent]
---
You are a worker. PROMPT-OF-THE-WORKER.
"""


BOXED = WORKER.replace("name: Worker", "name: Boxed\nlauncher: box")
SECRET = "SECRET-OF-THE-HOME"
LOOKS = "x=..; cat $x/secret $x/config.toml $x/state/*; echo made > made; printf seen-from-the-box-%d 42"
"""What is tried in a box: its user's file, the host's own, and the working folder; in words that no agent knows for a
file outside of that."""


def says(tools, results, texts):
    """The model of all four: what it does next."""
    told = "\n".join(texts)
    shell = next((name for name in tools if name in SHELLS), None)
    asks = next((name for name in tools if name.endswith("ask_parent")), None)
    if shell is None:
        return "A title"
    if "TASK-AGAIN" in told:
        return f"I was told {'before' if 'TASK-ASK' in told else 'nothing before'}."
    if "TASK-SLEEP" in told:
        return call(shell, SLEEPS) if not results else "I have slept."
    if "TASK-BOX" in told:
        return call(shell, LOOKS) if not results else f"I saw: {results[-1]}"
    if not results:
        return call(shell, "printf from-the-shell-%d 42")
    if len(results) == 1:
        return (asks, {"question": "Which colour?"}) if asks else f"There is no ask_parent in {tools}."
    seen = "from-the-shell-42" if "from-the-shell-42" in results[0] else results[0][:200]
    return f"The shell says {seen}; you say {'blue' if 'deep-blue' in results[1] else results[1][:200]}."


def call(shell, command):
    return shell, {SHELLS[shell]: command, "description": "a command of the test"}


class Bed:
    """A home of its own with one agent that is set up for the played model, and a host."""

    def __init__(self, name, program, binary, home, url, show):
        self.name, self.binary, self.show = name, binary, show
        self.project = home / "project"
        self.project.mkdir(parents=True)
        (home / "assistants").mkdir()
        (home / "assistants/worker.md").write_text(WORKER)
        (home / "assistants/boxed.md").write_text(BOXED)
        (home / "secret").write_text(SECRET)
        self.places = ["--state", home / "state", "--config", home / "config.toml", "--project", self.project]
        self.places += ["--assistants", home / "assistants"]
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG")}
        env, args = SET_UP[name](home, url)
        # Codex keeps its helpers in the home folder, and not where that is a temporary one.
        (home / "tmp").mkdir()
        self.env = {**kept, "HOME": str(home), "TMPDIR": str(home / "tmp"), **env}
        lines = [f'default_runner = "{name}"', f"[runners.{name}]", f'agent = "{name}"', f"program = {json.dumps(str(program))}"]
        lines += [f"env = {json.dumps(sorted(env))}", f"args = {json.dumps(args)}"]
        lines += ["[launchers.box]", 'preset = "bwrap"', "network = true", "write = true"]
        own = [home / path for path in OWN[name]]
        for path in own:
            path.mkdir(parents=True, exist_ok=True)
        lines += [f"bind = {json.dumps([str(path) for path in own])}"]
        lines += [f"bind_read = {json.dumps([str(path) for path in shown(program, home)])}"]
        if name == "codex" and os.getuid() == 0:
            # It makes a sandbox of its own in the box, which root without rights cannot.
            lines += ['options = ["--uid", "1000", "--gid", "1000"]']
        (home / "config.toml").write_text("\n".join(lines) + "\n")
        # What runs commands is given when the user has allowed it.
        self.ours("trust", "--all")

    def ours(self, *command, fails=False):
        """What one of our commands prints. It has to succeed."""
        words = [self.binary, *command, *self.places]
        return bed.run(words, self.project, self.env, self.show, None if fails else 0)[0]

    def lines(self, *command):
        return [json.loads(line) for line in self.ours(*command, "--json").splitlines()]

    def spawn(self, task, assistant="worker"):
        [spawned] = self.lines("spawn", task, "--assistant", assistant)
        return spawned["process_id"]

    def ended(self, process):
        """How a process ended."""
        self.ours("wait", process, "--timeout", bed.RUN_SECS_MAX - 10, fails=True)
        return self.row(process)

    def row(self, process):
        rows = json.loads(self.ours("ps", "--json"))
        rows = rows["items"] if isinstance(rows, dict) else rows
        return next(row for row in rows if row["process_id"] == process)

    def until(self, what, process, look):
        """What `look` gives as soon as that is something; not later than the process ends."""
        for _ in range(bed.RUN_SECS_MAX * 5):
            done = self.row(process)["done"]
            found = look()
            if found:
                return found
            if done:
                break
            time.sleep(0.2)
        raise AssertionError(f"{what} has not come: {self.ours('logs', process, fails=True)}")


def of_anthropic(home, url):
    (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}, []


def of_codex(_home, url):
    provider = {"name": "played", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "PLAYED_KEY"}
    # Where its sandbox may write a folder, it makes an empty `.git` there; of the system's that would make a project.
    settings = {"model": "played", "model_provider": "played", "sandbox_workspace_write.exclude_slash_tmp": True}
    settings |= {f"model_providers.played.{key}": value for key, value in provider.items()}
    return {"PLAYED_KEY": "none"}, [word for key, value in settings.items() for word in ("-c", f"{key}={json.dumps(value)}")]


def of_opencode(home, url):
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"played": {"tool_call": True}}}
    (home / "opencode.json").write_text(json.dumps({"model": "fake/played", "provider": {"fake": provider}}))
    never = {f"OPENCODE_DISABLE_{what}": "1" for what in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"]}
    return {"OPENCODE_CONFIG": str(home / "opencode.json"), **never}, []


def of_gemini(home, url):
    (home / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False}}
    (home / ".gemini/settings.json").write_text(json.dumps(settings))
    return {"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none"}, ["-m", "gemini-2.5-flash"]


SET_UP = {"claude": of_anthropic, "codex": of_codex, "opencode": of_opencode, "gemini": of_gemini}


OWN = {
    "claude": [".claude"],
    "codex": [".codex"],
    "opencode": [".local/share/opencode"],
    "gemini": [".gemini"],
}
"""Where the agents keep what is theirs, below the home."""


def shown(program, home):
    """What has to be seen in a box so that an agent starts there: nothing below the homes of users is."""
    real = program.resolve()
    yield program.parent
    yield next(folder for folder in real.parents if folder.name == "node_modules")
    if node := shutil.which("node"):
        yield pathlib.Path(node).resolve().parent.parent
    yield from home.glob("opencode.json")


def asks_and_uses_the_answer(machine, model):
    process = machine.process = machine.spawn("TASK-ASK: look, ask, and tell.")
    question = machine.until("a question", process, lambda: json.loads(machine.ours("questions", "--json"))["questions"])[0]
    assert question["question"] == "Which colour?" and question["process_id"] == process, question
    machine.ours("reply", process, "deep-blue")
    row = machine.ended(process)
    [ended] = [json.loads(line) for line in machine.ours("wait", process, "--json").splitlines() if '"kind"' in line] or [row]
    assert row["status"] == "finished", (row, machine.ours("logs", process, fails=True))
    assert "The shell says from-the-shell-42; you say blue." in json.dumps(ended) + machine.ours("logs", process), ended
    assert any("PROMPT-OF-THE-WORKER" in body for body in model.bodies), "the prompt did not come"


def tells_what_it_did_and_used(machine, _model):
    row, log = machine.row(machine.process), machine.ours("logs", machine.process, "--json")
    assert "from-the-shell" in log and "ask_parent" in log, log
    used = json.dumps(row["usage"])
    tokens = sum(value for key, value in row["usage"].items() if key.endswith("_tokens") and isinstance(value, int))
    assert tokens >= 2 * sum(played.USAGE), used


def goes_on_where_it_ended(machine, _model):
    [resumed] = machine.lines("resume", machine.process, "--query", "TASK-AGAIN: what were you told?")
    row = machine.ended(resumed["process_id"])
    assert row["status"] == "finished", row
    assert "I was told before." in machine.ours("logs", resumed["process_id"], "--json"), machine.ours("logs", resumed["process_id"])


def works_in_a_box(machine, _model):
    process = machine.spawn("TASK-BOX: look around.", "boxed")
    row = machine.ended(process)
    log = machine.ours("logs", process, "--json", fails=True)
    assert row["status"] == "finished", (row, log)
    assert "seen-from-the-box-42" in log, log
    assert SECRET not in log and "default_runner" not in log and "SQLite" not in log, log
    assert (machine.project / "made").read_text() == "made\n"


def is_cancelled(machine, _model):
    process = sleeps(machine)
    machine.ours("cancel", process)
    assert machine.ended(process)["status"] == "cancelled"
    gone(process)


def dies_with_its_host(machine, _model):
    process = sleeps(machine)
    host = json.loads(machine.ours("status", "--json"))["host"]["pid"]
    os.kill(host, signal.SIGKILL)
    gone(process)
    assert machine.row(process)["reason"] == "host_lost", machine.row(process)


def dies_with_its_runner(machine, _model):
    process = sleeps(machine)
    runner = next(pid for pid, words in marked(process) if "assistant" in words[0] and "cli" in words)
    os.kill(runner, signal.SIGKILL)
    row = machine.ended(process)
    assert row["reason"] == "runner_exited", row
    gone(process)


def fails_with_its_agent(machine, _model):
    process = sleeps(machine)
    [agent, *_] = [pid for pid, words in marked(process) if any(machine.name in word for word in words[:2])]
    for pid, _ in [one for one in marked(process) if any(machine.name in word for word in one[1][:2]) and "cli" not in one[1]]:
        kill(pid)
    row = machine.ended(process)
    assert row["status"] == "failed" and agent, row
    gone(process)


def sleeps(machine):
    """A process whose agent waits for a command that sleeps."""
    process = machine.spawn("TASK-SLEEP: sleep.")
    machine.until("the sleep", process, lambda: any(SLEEPS in " ".join(words) for _, words in marked(process)))
    return process


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def marked(process):
    """All that belongs to a process: ids with command lines."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}{process}".encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
                found.append((int(folder.name), words))
        except OSError:
            continue
    return found


def gone(process):
    until = time.monotonic() + GONE_SECS_MAX
    while left := marked(process):
        assert time.monotonic() < until, f"left behind: {left}"
        time.sleep(0.05)


CHECKS = [
    asks_and_uses_the_answer,
    tells_what_it_did_and_used,
    goes_on_where_it_ended,
    works_in_a_box,
    is_cancelled,
    dies_with_its_runner,
    fails_with_its_agent,
    dies_with_its_host,
]


def main(folder, binary, *words):
    show, names = "--show" in words, [word for word in words if word != "--show"] or list(SET_UP)
    failed, binary = 0, pathlib.Path(binary).resolve()
    for name in names:
        program = pathlib.Path(folder).resolve() / name
        if not program.exists():
            print(f"skip {name}: it is not in {folder}", flush=True)
            continue
        failed += tried(name, program, binary, show)
    return 1 if failed else 0


def of_its_owner_only(folder):
    """A folder that nobody else may write to, nor to any above it: Gemini CLI reads no settings elsewhere."""
    owned = lambda path: not path.stat().st_mode & 0o022
    home = pathlib.Path.home() / ".cache"
    home.mkdir(exist_ok=True)
    return next((place for place in [folder, home] if all(map(owned, [place, *place.parents]))), None)


def tried(name, program, binary, show):
    """Makes all checks with one agent; how many failed."""
    model, place = played.Models(says), of_its_owner_only(program.parent)
    if place is None and name == "gemini":
        print(f"skip {name}: others may write to every folder that there is for it", flush=True)
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, dir=place) as home:
        machine = Bed(name, program, binary, pathlib.Path(home), model.url, show)
        try:
            return bed.failures(CHECKS, machine, model, prefix=f"{name}_")
        finally:
            machine.ours("stop", "--force", fails=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
