"""Lets real coding agents run assistants, by their command lines and over the Agent Client Protocol: each does a task with
a tool of its own, asks whoever gave it the task through the bridge, uses the answer, goes on where it ended, starts nothing
of its user, and is cancelled and killed without leaving anything behind.

usage: agents.py FOLDER BINARY [--show] [NAME...]

FOLDER has the programs: claude, claude-agent-acp, codex, gemini, opencode; one that is not there is told as skipped. NAME is
one of these, or gemini-acp or opencode-acp. Their models are played here (see played.py). Prints a line `ok NAME`,
`skip NAME: WHY` or `FAIL NAME: WHY` for each check, with --show also what was said; ends with 1 if one failed.
"""

import json
import os
import pathlib
import signal
import sys

import bed
import played
from agents_bed import SHELLS, Agent, Place, call, gone, kill, marked, of_its_owner_only
from agents_planted import reads_no_file_of_the_task_that_it_may_not_read, starts_nothing_of_its_user

SLEEPS = "sleep 7777"
SECRET = "SECRET-OF-THE-HOME"
LOOKS = "x=..; cat $x/secret $x/config.toml $x/state/*; echo made > made; printf seen-from-the-box-%d 42"
"""What is tried in a box: its user's file, the host's own, and the working folder; in words that no agent knows for a
file outside of that."""


AGENTS = [
    Agent("claude"),
    Agent("codex"),
    Agent("opencode"),
    Agent("gemini"),
    # Where it does not trust the folder, it starts no servers of tools.
    Agent("gemini", ["--acp", "--skip-trust"]),
    Agent("opencode", ["acp"]),
    Agent("claude-agent-acp", []),
]


def says(tools, results, texts):
    """The model of all: what it does next."""
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
    # Over ACP some tell those of the last call only.
    assert tokens >= (2 if machine.agent.acp is None else 1) * sum(played.USAGE), used


def goes_on_where_it_ended(machine, _model):
    if machine.agent.name == "gemini-acp":
        make_sessions_older(machine.home)
    [resumed] = machine.lines("resume", machine.process, "--query", "TASK-AGAIN: what were you told?")
    row = machine.ended(resumed["process_id"])
    assert row["status"] == "finished", row
    log = machine.ours("logs", resumed["process_id"])
    assert "I was told before." in log and "goes without its session" not in log, log


def make_sessions_older(home):
    """Gemini CLI (0.61) over ACP loses a session that is gone on with in the minute in which it began: the name of its file
    has the minute, as in session-2026-11-29T13-10-9f05f882.jsonl."""
    for file in home.glob(".gemini/tmp/*/chats/session-*"):
        file.rename(file.with_name(f"session-2020-01-01T00-00{file.name[24:]}"))


def works_in_a_box(machine, _model):
    (machine.home / "secret").write_text(SECRET)
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
    [runner] = [pid for pid, words in marked(process) if "assistant" in words[0] and words[1] in ("cli", "acp")]
    os.kill(runner, signal.SIGKILL)
    row = machine.ended(process)
    assert row["reason"] == "runner_exited", row
    gone(process)


def dies_with_its_guard(machine, _model):
    process = sleeps(machine)
    [guard] = [pid for pid, words in marked(process) if "assistant" in words[0] and "guard" in words[1:2]]
    os.kill(guard, signal.SIGKILL)
    row = machine.ended(process)
    assert row["status"] == "failed", row
    gone(process)


def fails_with_its_agent(machine, _model):
    process, program = sleeps(machine), machine.agent.program
    agent = [pid for pid, words in marked(process) if any(program in pathlib.Path(word).name for word in words[:2])]
    assert agent, marked(process)
    for pid in agent:
        kill(pid)
    row = machine.ended(process)
    assert row["status"] == "failed", row
    gone(process)


def sleeps(machine):
    """A process whose agent waits for a command that sleeps."""
    process = machine.spawn("TASK-SLEEP: sleep.")
    machine.until("the sleep", process, lambda: any(SLEEPS in " ".join(words) for _, words in marked(process)))
    return process


CHECKS = [
    asks_and_uses_the_answer,
    tells_what_it_did_and_used,
    goes_on_where_it_ended,
    works_in_a_box,
    reads_no_file_of_the_task_that_it_may_not_read,
    starts_nothing_of_its_user,
    is_cancelled,
    dies_with_its_runner,
    dies_with_its_guard,
    fails_with_its_agent,
    dies_with_its_host,
]


def main(folder, binary, *words):
    show, names = "--show" in words, [word for word in words if word != "--show"]
    folder, binary = pathlib.Path(folder).resolve(), pathlib.Path(binary).resolve()
    failed = 0
    for agent in [agent for agent in AGENTS if not names or agent.name in names]:
        failed += tried(Place(agent, folder, binary, show))
    return 1 if failed else 0


def tried(place):
    """Makes all checks with one agent; how many failed."""
    name = place.agent.name
    if not place.program.exists():
        print(f"skip {name}: {place.agent.program} is not in {place.folder}", flush=True)
        return 0
    if place.agent.kind == "gemini" and of_its_owner_only(place.folder) is None:
        print(f"skip {name}: others may write to every folder that there is for it", flush=True)
        return 0
    # The README says of these that they keep what is their user's over ACP.
    keeps = place.agent.acp is not None and place.agent.kind in ("gemini", "opencode")
    checks = [check for check in CHECKS if not (keeps and check is starts_nothing_of_its_user)]
    with place.bed(says) as (machine, model):
        return bed.failures(checks, machine, model, prefix=f"{name}_")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
