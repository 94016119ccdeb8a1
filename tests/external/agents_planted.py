"""What an agent must leave alone when it runs an assistant: the servers, hooks and plugins of its user and of the project,
and the files that a task names and the assistant may not read.
"""

import json
import pathlib
import sys
import time

import bed
from agents_bed import SHELLS, call

STARTS_SECS_MAX = 60
"""The longest that an agent takes to start what is planted for it."""
SERVER = pathlib.Path(__file__).resolve().with_name("planted.py")
SECRETS = {"in": "SECRET-IN-THE-PROJECT", "out": "SECRET-OUTSIDE-OF-IT"}


class Planted:
    """What is planted in a home: each thing leaves a file of its name behind as soon as it is started."""

    def __init__(self, machine):
        self.home, self.project, self.names = machine.home, machine.project, set()
        self.started = self.home / "started"
        self.started.mkdir()
        PLANTS[machine.agent.kind](self, self.home, self.project)

    def write(self, path, content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))

    def words(self, name):
        """The command of something planted. It is a server of tools, and does as a hook too."""
        self.names.add(name)
        # The shell is there before Python is, which may take its time.
        starts = 'touch "$1"; exec "$2" "$3" "$4"'
        return ["/bin/sh", "-c", starts, "sh", str(self.started / name), sys.executable, str(SERVER), name]

    def server(self, name):
        command, *args = self.words(name)
        return {"command": command, "args": args}

    def line(self, name):
        """The same as a line for a shell."""
        self.names.add(name)
        return f"touch '{self.started / name}'"

    def seen(self):
        """What was started."""
        return {path.name for path in self.started.iterdir()}

    def forget(self):
        for path in self.started.iterdir():
            path.unlink()


PLUGIN = {"name": "planted", "source": "./planted", "description": "x", "version": "1.0.0"}
MARKET = {"name": "market", "owner": {"name": "x"}, "plugins": [PLUGIN]}
SOURCE = lambda folder: {"source": {"source": "directory", "path": str(folder)}, "lastUpdated": "2026-01-01T00:00:00.000Z"}


def for_claude(planted, home, project):
    hook = lambda name: {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": planted.line(name)}]}]}
    own = json.loads((home / ".claude.json").read_text())
    mine = {"hasTrustDialogAccepted": True, "mcpServers": {"planted_local": planted.server("local-server")}}
    # It may know the project by the folder of a repository around it.
    projects = {str(folder): mine for folder in [project, *project.parents]}
    own |= {"mcpServers": {"planted_user": planted.server("user-server")}, "projects": projects}
    planted.write(home / ".claude.json", own)
    planted.write(project / ".mcp.json", {"mcpServers": {"planted_project": planted.server("project-server")}})
    settings = {"enableAllProjectMcpServers": True, "hooks": hook("user-hook")}
    # A plugin of the user, as `claude plugin install` leaves it.
    plugins, market = home / ".claude/plugins", home / "market"
    planted.write(market / ".claude-plugin/marketplace.json", MARKET)
    planted.write(plugins / "known_marketplaces.json", {"market": SOURCE(market) | {"installLocation": str(market)}})
    installed = {"scope": "user", "installPath": str(market / "planted"), "version": "1.0.0"}
    planted.write(plugins / "installed_plugins.json", {"version": 2, "plugins": {"planted@market": [installed]}})
    planted.write(market / "planted/.claude-plugin/plugin.json", {"name": "planted", "version": "1.0.0"})
    planted.write(market / "planted/hooks/hooks.json", {"hooks": hook("plugin-hook")})
    planted.write(market / "planted/.mcp.json", {"mcpServers": {"planted_plugin": planted.server("plugin-server")}})
    settings |= {"extraKnownMarketplaces": {"market": SOURCE(market)}, "enabledPlugins": {"planted@market": True}}
    planted.write(home / ".claude/settings.json", settings)
    planted.write(project / ".claude/settings.json", {"hooks": hook("project-hook")})
    planted.write(project / ".claude/settings.local.json", {"hooks": hook("local-hook")})


def for_codex(planted, home, project):
    def settings(name):
        server = planted.server(name)
        return f"[mcp_servers.planted_{name[:4]}]\n" + "".join(f"{key} = {json.dumps(server[key])}\n" for key in server)

    notify = f"notify = {json.dumps(planted.words('user-notify'))}\n"
    trust = f'[projects."{project}"]\ntrust_level = "trusted"\n'
    planted.write(home / ".codex/config.toml", notify + settings("user-server") + trust)
    planted.write(project / ".codex/config.toml", settings("project-server"))
    hook = lambda name: {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": planted.line(name)}]}]}}
    planted.write(home / ".codex/hooks.json", hook("user-hook"))
    planted.write(project / ".codex/hooks.json", hook("project-hook"))


def for_opencode(planted, home, project):
    def settings(name, server="planted"):
        return {"mcp": {server: {"type": "local", "command": planted.words(name), "enabled": True}}}

    def plugin(name):
        planted.names.add(name)
        return f'export const P = async () => (require("fs").writeFileSync("{planted.started / name}", ""), {{}})\n'

    planted.write(home / ".config/opencode/opencode.json", settings("user-server", "planted_user"))
    planted.write(home / ".config/opencode/plugin/p.js", plugin("user-plugin"))
    planted.write(home / ".opencode/opencode.json", settings("home-server", "assistants"))
    planted.write(home / ".opencode/plugin/p.js", plugin("home-plugin"))
    planted.write(project / "opencode.json", settings("project-server", "planted_project"))
    planted.write(project / ".opencode/opencode.json", settings("folder-server", "planted_folder"))
    planted.write(project / ".opencode/plugin/p.js", plugin("folder-plugin"))


def for_gemini(planted, home, project):
    hook = lambda name: {"SessionStart": [{"hooks": [{"type": "command", "command": planted.line(name)}]}]}
    own = json.loads((home / ".gemini/settings.json").read_text())
    servers = {"planted": planted.server("user-server"), "assistants": planted.server("namesake-server")}
    planted.write(home / ".gemini/settings.json", own | {"mcpServers": servers, "hooks": hook("user-hook")})
    extension = {"name": "planted", "version": "1.0.0", "mcpServers": {"planted_extension": planted.server("user-extension")}}
    planted.write(home / ".gemini/extensions/planted/gemini-extension.json", extension)
    servers = {"planted_project": planted.server("project-server")}
    discovers = {"discoveryCommand": "/bin/sh " + str(project / "discover.sh")}
    planted.write(project / "discover.sh", planted.line("project-discovery") + "; echo '[]'\n")
    settings = {"mcpServers": servers, "hooks": hook("project-hook"), "tools": discovers}
    planted.write(project / ".gemini/settings.json", settings)
    planted.write(home / ".gemini/trustedFolders.json", {str(project): "TRUST_FOLDER"})


PLANTS = {"claude": for_claude, "codex": for_codex, "opencode": for_opencode, "gemini": for_gemini}

ALONE = {
    "claude": ["-p", "TASK-ALONE"],
    "codex": ["exec", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", "TASK-ALONE"],
    "opencode": ["run", "TASK-ALONE"],
    "gemini": ["--skip-trust", "-p", "TASK-ALONE"],
}
"""What the user types to have the agent work without us."""


def starts_nothing_of_its_user(machine, _model):
    """First the agent works by itself, which starts all that is planted: then that nothing is started says something."""
    planted = None

    def says(tools, results, texts):
        told = "\n".join(texts)
        shell = next((name for name in tools if name in SHELLS), None)
        if "TASK-ALONE" in told:
            until = time.monotonic() + STARTS_SECS_MAX
            while planted.names - planted.seen() - LATE and time.monotonic() < until:
                time.sleep(0.05)
        elif shell and not results:
            return call(shell, "printf from-the-shell-%d 42")
        return "Done."

    with machine.place.bed(says) as (machine, models):
        planted = Planted(machine)
        if machine.agent.acp is None:
            words = [machine.place.program, *ALONE[machine.agent.kind], *machine.args]
            bed.run(words, machine.project, machine.env, machine.show)
            # Some is started as the last of all, and not waited for.
            until = time.monotonic() + STARTS_SECS_MAX
            while planted.seen() != planted.names:
                assert time.monotonic() < until, f"not started by the agent alone: {planted.names - planted.seen()}"
                time.sleep(0.05)
        planted.forget()
        models.asked.clear()
        process = machine.spawn("TASK-PLANTED: look.")
        row = machine.ended(process)
        assert row["status"] == "finished", (row, machine.ours("logs", process, fails=True))
        assert not planted.seen(), f"started: {sorted(planted.seen())}"
        offered = {tool for asked in models.asked for tool in asked["tools"]}
        foreign = {tool for tool in offered if "planted" in tool or "assistants" in tool and not tool.endswith("ask_parent")}
        assert not foreign and any(tool.endswith("ask_parent") for tool in offered), sorted(offered)


LATE = {"user-notify"}
"""What is started when the model has answered."""


def reads_no_file_of_the_task_that_it_may_not_read(machine, model):
    (machine.project / "named.env").write_text(SECRETS["in"])
    (machine.home / "named-too.env").write_text(SECRETS["out"])
    for assistant in ["bare", "blind"]:
        model.bodies.clear()
        process = machine.spawn(f"TASK-FILES: tell of @named.env and @{machine.home}/named-too.env, please.", assistant)
        row = machine.ended(process)
        assert row["status"] == "finished", (assistant, row, machine.ours("logs", process, fails=True))
        told = "\n".join(model.bodies)
        assert all(words in told for words in ["TASK-FILES: tell of", "named.env", "named-too.env"]), (assistant, told)
        shown = [secret for secret in SECRETS.values() if secret in told]
        assert not shown, f"{assistant}: the model was shown {shown}"
