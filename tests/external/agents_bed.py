"""The homes in which real coding agents are tried: each with an agent that is set up for a model that is played (see
played.py), assistants, and a host; and what belongs to a process on this machine.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import tempfile
import time

import bed
import played

GONE_SECS_MAX = 60
MARK = "ASSISTANT_PROCESS_ID="
"""Whatever an assistant's runner starts has it in its environment."""
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
BARE = WORKER.replace("name: Worker", "name: Bare").replace("[Bash, Read, ask_parent]", "[]")
BLIND = WORKER.replace("name: Worker", "name: Blind").replace("[Bash, Read, ask_parent]", "[Bash]\ndisallowedTools: [Read]")
ASSISTANTS = {"worker": WORKER, "boxed": BOXED, "bare": BARE, "blind": BLIND}


def call(shell, command):
    return shell, {SHELLS[shell]: command, "description": "a command of the test"}


@dataclasses.dataclass
class Agent:
    """One of the agents, and how it is started."""

    program: str
    """Its name in the folder of the programs."""
    acp: list | None = None
    """Its arguments where it speaks the Agent Client Protocol; none where it runs by the command line."""

    @property
    def name(self):
        """What the checks with it are called by."""
        return self.program if self.acp is None else self.program.removesuffix("-acp") + "-acp"

    @property
    def kind(self):
        return "claude" if self.program == "claude-agent-acp" else self.program


@dataclasses.dataclass
class Place:
    """Where an agent is tried."""

    agent: Agent
    folder: pathlib.Path
    """The folder of the programs."""
    binary: pathlib.Path
    show: bool

    @property
    def program(self):
        return self.folder / self.agent.program

    @contextlib.contextmanager
    def bed(self, says):
        """A bed and the models that it asks, for a while."""
        models, place = played.Models(says), of_its_owner_only(self.folder)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, dir=place) as home:
            machine = Bed(self, pathlib.Path(home), models.url)
            try:
                yield machine, models
            finally:
                machine.ours("stop", "--force", fails=True)


class Bed:
    """A home of its own with one agent that is set up for the played model, and a host."""

    def __init__(self, place, home, url):
        self.place, self.agent, self.home = place, place.agent, home
        self.binary, self.show = place.binary, place.show
        self.project = home / "project"
        self.project.mkdir(parents=True)
        (home / "assistants").mkdir()
        for name, definition in ASSISTANTS.items():
            (home / f"assistants/{name}.md").write_text(definition)
        self.places = ["--state", home / "state", "--config", home / "config.toml", "--project", self.project]
        self.places += ["--assistants", home / "assistants"]
        kept = {key: value for key, value in os.environ.items() if key in ("PATH", "LANG")}
        kind, program = self.agent.kind, place.program
        env, self.args = SET_UP[kind](home, url)
        # Codex keeps its helpers in the home folder, and not where that is a temporary one.
        (home / "tmp").mkdir()
        self.env = {**kept, "HOME": str(home), "TMPDIR": str(home / "tmp"), **env}
        lines = [f'default_runner = "{kind}"', f"[runners.{kind}]", f"env = {json.dumps(sorted(env))}"]
        if self.agent.acp is None:
            lines += [f'agent = "{kind}"', f"program = {json.dumps(str(program))}", f"args = {json.dumps(self.args)}"]
        else:
            lines += [f"acp = {json.dumps([str(program), *self.agent.acp, *self.args])}"]
        lines += ["[launchers.box]", 'preset = "bwrap"', "network = true", "write = true"]
        own = [home / path for path in OWN[kind]]
        for path in own:
            path.mkdir(parents=True, exist_ok=True)
        lines += [f"bind = {json.dumps([str(path) for path in own])}"]
        lines += [f"bind_read = {json.dumps([str(path) for path in shown(program, home)])}"]
        if kind == "codex" and os.getuid() == 0:
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


def of_its_owner_only(folder):
    """A folder that nobody else may write to, nor to any above it: Gemini CLI reads no settings elsewhere."""
    owned = lambda path: not path.stat().st_mode & 0o022
    home = pathlib.Path.home() / ".cache"
    home.mkdir(exist_ok=True)
    return next((place for place in [folder, home] if all(map(owned, [place, *place.parents]))), None)
