"""Drives `assistant-host mcp` with the public Python client of MCP, in the way that the first argument names.

usage: client.py session|auto BINARY

`session` is ClientSession, which shakes hands as older clients do (both major versions of the package have it);
`auto` is mcp.Client of version 2, which asks for the newest protocol. Prints a line `ok NAME` or `FAIL NAME: WHY` for
each check; ends with 1 if one failed.
"""

import asyncio
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import traceback
import uuid

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

FIXTURES = pathlib.Path(__file__).resolve().parent / "fixtures"
PROTOCOL = {"session": "2025-11-25", "auto": "2026-07-28"}
TOOLS_BYTES_MAX = 24 * 1024
MESSAGE_BYTES_MAX = 1024 * 1024
WAIT_MS = 20_000
CHECK_SECS_MAX = 90
FAILURE_CHARS_MAX = 2_000
PROTOCOL_ERROR = getattr(mcp, "MCPError", None) or mcp.McpError
INVALID_PARAMS = -32602
UNKNOWN_ID = str(uuid.uuid4())


class Server:
    """A connected server, the same for both versions of the package. Results are plain dicts with MCP's names."""

    def __init__(self, client, told):
        self.client, self.told = client, told

    async def tools(self):
        return dump(await self.client.list_tools())["tools"]

    async def call(self, tool, **arguments):
        """The structured result of a call that has to succeed."""
        result = await self.raw(tool, arguments)
        assert not result.get("isError"), f"{tool} failed: {result['content'][0]['text']}"
        return result["structuredContent"]

    async def refused(self, tool, **arguments):
        """The error of a call that has to be refused as a tool error: code, message, hint, retryable."""
        result = await self.raw(tool, arguments)
        assert result.get("isError"), f"{tool} was not refused: {result}"
        error = json.loads(result["content"][0]["text"])
        assert isinstance(error["retryable"], bool), error
        assert error["message"] and error["hint"], error
        return error

    async def raw(self, tool, arguments):
        result = dump(await self.client.call_tool(tool, arguments))
        assert [part["type"] for part in result["content"]] == ["text"], result["content"]
        structured = result.get("structuredContent")
        if structured is not None:
            assert structured == json.loads(result["content"][0]["text"]), "the text is no mirror of the data"
        return result

    async def spawn(self, assistant_id, **more):
        return await self.call("spawn_assistant", assistant_id=assistant_id, query="Do it.", **more)

    async def ended(self, process_id):
        """The process once it is done."""
        async with asyncio.timeout(CHECK_SECS_MAX):
            while True:
                polled = await self.call("poll_assistant", process_id=process_id, wait_ms=WAIT_MS)
                if polled["process"]["done"]:
                    return polled

    async def first_message(self, thread_id, **more):
        got = await self.call("recv_message", thread_id=thread_id, unread_only=True, wait_ms=WAIT_MS, **more)
        assert got["messages"], f"no message within {WAIT_MS} ms"
        return got


def dump(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@contextlib.asynccontextmanager
async def connect(mode, binary, state, config):
    options = ["--config", str(config), "--state", str(state), "--assistants", str(FIXTURES / "assistants")]
    server = StdioServerParameters(command=binary, args=["mcp", *options], cwd=str(state.parent))
    if mode == "auto":
        async with mcp.Client(server) as client:
            told = {"serverInfo": dump(client.server_info), "instructions": client.instructions}
            yield Server(client, told | {"protocolVersion": client.protocol_version})
    else:
        async with stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
            told = dump(await session.initialize())
            yield Server(session, told)


def stop(binary, state):
    """Ends the host that the first client has started: it would go on without clients."""
    subprocess.run([binary, "stop", "--force", "--state", state], check=True, stderr=subprocess.DEVNULL)


CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


@check
async def says_who_it_is(server, mode):
    assert server.told["serverInfo"]["name"] == "assistants", server.told
    assert server.told["protocolVersion"] == PROTOCOL[mode], server.told
    assert "spawn_assistant" in server.told["instructions"]
    assert len(server.told["instructions"].encode()) <= 2048


@check
async def lists_portable_tools(server, _mode):
    tools = await server.tools()
    names = [tool["name"] for tool in tools]
    wanted = {"list_assistant", "search_assistant", "spawn_assistant", "poll_assistant", "cancel_assistant"}
    assert wanted | {"send_message", "recv_message"} <= set(names), names
    assert names == sorted(names), names
    for tool in tools:
        hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert hints <= tool["annotations"].keys(), tool["name"]
        assert tool["title"] and tool["description"], tool["name"]
        assert tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object", tool["name"]
    size = len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= TOOLS_BYTES_MAX, f"tools/list has {size} bytes"


@check
async def finds_by_task(server, _mode):
    found = await server.call("search_assistant", query="write the changelog of the new version")
    assert found["items"][0]["assistant_id"] == "release-notes-writer", found
    assert 0 < found["items"][0]["score"] <= 1 and found["items"][0]["matched_terms"], found
    for odd in ['"', "a AND", "x:y", "*", "🦀", "(" * 100, "x" * 100_000]:
        await server.call("search_assistant", query=odd)


@check
async def lists_assistants_in_pages(server, _mode):
    first = await server.call("list_assistant", page_size=2)
    rest = await server.call("list_assistant", page_size=2, page=first["next_page"])
    ids = [item["assistant_id"] for item in first["items"] + rest["items"]]
    assert ids == ["change-reviewer", "log-watcher", "release-notes-writer"], ids
    assert first["total_items"] == first["totalItems"] == 3 and "next_page" not in rest, first
    whole = await server.call("list_assistant", assistant_id="log-watcher")
    assert whole["system_prompt"].strip() == "You watch logs.", whole


@check
async def spawns_by_search_and_reads_the_result(server, _mode):
    spawned = await server.call("spawn_assistant", search={"text": "write release notes"}, query="Version 2.")
    assert spawned["assistant_id"] == "release-notes-writer" and spawned["matched"]["score"] > 0.2, spawned
    assert spawned["status"] in ("starting", "running", "queued"), spawned
    polled = await server.ended(spawned["process_id"])
    assert polled["process"]["status"] == "finished", polled
    assert polled["process"]["usage"]["model_calls"] == 1, polled
    assert polled["message_summary"]["unread_messages"] == 1, polled
    thread = spawned["thread_id"]
    peeked = await server.call("recv_message", thread_id=thread, unread_only=True)
    read = await server.call("recv_message", thread_id=thread, unread_only=True, mark_as_read=True)
    assert [m["content"] for m in read["messages"]] == ["Notes: the parser is faster."], read
    assert [m["id"] for m in peeked["messages"]] == [m["id"] for m in read["messages"]], "peeking took the message"
    assert read["summary"] == {"total_fetched": 1, "marked_as_read": 1}, read
    again = await server.call("recv_message", thread_id=thread, unread_only=True)
    assert again["messages"] == [], again
    message = (await server.call("recv_message", thread_id=thread))["messages"][-1]
    assert message["from_assistant_id"] == "release-notes-writer" and message["read_at"], message


@check
async def talks_with_a_running_one(server, _mode):
    spawned = await server.spawn("change-reviewer")
    thread = spawned["thread_id"]
    asked = await server.first_message(thread, mark_as_read=True)
    assert asked["messages"][0]["content"] == "What shall I look at?", asked
    assert asked["messages"][0]["from_process_id"] == spawned["process_id"], asked
    sent = await server.call("send_message", thread_id=thread, message="At empty input.")
    assert sent["success"] and sent["message_id"], sent
    polled = await server.ended(spawned["process_id"])
    assert polled["process"]["status"] == "finished", polled
    result = await server.first_message(thread, mark_as_read=True)
    assert result["messages"][0]["content"] == "Reviewed, as you said: At empty input.", result
    error = await server.refused("send_message", thread_id=thread, message="Too late.")
    assert error["code"] == "process_ended", error


@check
async def waits_for_a_result(server, _mode):
    spawned = await server.spawn("release-notes-writer", run_mode="sync")
    assert spawned["status"] == "finished", spawned
    assert spawned["result"]["content"] == "Notes: the parser is faster.", spawned


@check
async def cancels_one_that_hangs(server, _mode):
    spawned = await server.spawn("log-watcher", wait_ms=200)
    assert spawned["status"] == "running" and "result" not in spawned, spawned
    whole = "x" * MESSAGE_BYTES_MAX
    await server.call("send_message", thread_id=spawned["thread_id"], message=whole)
    error = await server.refused("send_message", thread_id=spawned["thread_id"], message=whole + "x")
    assert error["code"] == "limit_message_bytes", error
    cancelled = await server.call("cancel_assistant", process_id=spawned["process_id"], reason="enough")
    assert cancelled["cancelled"] == [spawned["process_id"]], cancelled
    polled = await server.ended(spawned["process_id"])
    assert (polled["process"]["status"], polled["process"]["cause"]) == ("cancelled", "requested"), polled
    again = await server.call("cancel_assistant", process_id=spawned["process_id"])
    assert again["cancelled"] == [], again


# A call that is refused: its tool, its arguments, the code, and what the error has to name.
REFUSED = [
    ("spawn_assistant", {"assistant_id": "change-reviewr", "query": "x"}, "unknown_assistant", "change-reviewer"),
    ("spawn_assistant", {"search": {"text": "bake sourdough bread"}, "query": "x"}, "no_match", ""),
    ("spawn_assistant", {"query": "x"}, "bad_argument", "search"),
    ("spawn_assistant", {"assistant_id": "log-watcher"}, "bad_argument", "query"),
    ("spawn_assistant", {"assistant_id": "log-watcher", "query": ""}, "bad_argument", "query"),
    ("spawn_assistant", {"assistant_id": "log-watcher", "query": "x", "model": "none"}, "no_model", "none"),
    ("spawn_assistant", {"assistant_id": "log-watcher", "query": "x", "working_dir": "/etc"}, "bad_argument", "/etc"),
    ("spawn_assistant", {"assistant_id": "log-watcher", "query": "x", "run_mode": "soon"}, "bad_argument", "run_mode"),
    ("search_assistant", {"query": ""}, "bad_argument", "query"),
    ("search_assistant", {}, "bad_argument", "query"),
    ("search_assistant", {"query": 7}, "bad_argument", "query"),
    ("search_assistant", {"query": "x", "limit": "many"}, "bad_argument", "limit"),
    ("search_assistant", {"query": "x", "colour": "red"}, "bad_argument", "colour"),
    ("list_assistant", {"page_size": 5, "pageSize": 5}, "bad_argument", "pageSize"),
    ("list_assistant", {"assistant_id": "change-reviewr"}, "unknown_assistant", "change-reviewer"),
    ("poll_assistant", {"process_id": UNKNOWN_ID}, "unknown_process", UNKNOWN_ID),
    ("poll_assistant", {"process_id": "first"}, "bad_argument", "first"),
    ("cancel_assistant", {"process_id": UNKNOWN_ID}, "unknown_process", UNKNOWN_ID),
    ("recv_message", {"thread_id": UNKNOWN_ID}, "unknown_thread", UNKNOWN_ID),
    ("send_message", {"thread_id": UNKNOWN_ID, "message": "x"}, "unknown_thread", UNKNOWN_ID),
]


@check
async def refuses_with_code_message_and_hint(server, _mode):
    wrong = []
    for tool, arguments, code, named in REFUSED:
        try:
            error = await server.refused(tool, **arguments)
        except AssertionError as refusal:
            wrong.append(f"{tool} {arguments}: {refusal}")
            continue
        if error["code"] != code or named not in error["message"] + error["hint"]:
            wrong.append(f"{tool} {arguments}: want {code} naming {named!r}, got {error}")
    assert not wrong, "\n     ".join(wrong)


@check
async def takes_camel_case(server, _mode):
    listed = await server.call("list_assistant", pageSize=1)
    assert len(listed["items"]) == 1, listed


@check
async def refuses_an_unknown_tool_in_the_protocol(server, _mode):
    try:
        await server.client.call_tool("make_coffee", {})
    except PROTOCOL_ERROR as error:
        assert error.error.code == INVALID_PARAMS, error
        assert "make_coffee" in str(error), error
    else:
        raise AssertionError("it was answered")


@check
async def calls_run_side_by_side(server, _mode):
    spawned = await asyncio.gather(*(server.spawn("release-notes-writer", run_mode="sync") for _ in range(8)))
    assert [one["status"] for one in spawned] == ["finished"] * 8, spawned
    assert len({one["thread_id"] for one in spawned}) == 8, "a thread was given twice"


async def reads_after_a_restart(mode, binary, state):
    """The second host has the state of the first, and no model."""
    async with connect(mode, binary, state, FIXTURES / "config.toml") as server:
        done, hanging = await server.spawn("release-notes-writer", run_mode="sync"), await server.spawn("log-watcher")
    stop(binary, state)
    config = state.parent / "no-model.toml"
    config.write_text("")
    async with connect(mode, binary, state, config) as server:
        polled = await server.call("poll_assistant", process_id=done["process_id"])
        assert polled["process"]["status"] == "finished", polled
        read = await server.call("recv_message", thread_id=done["thread_id"])
        assert read["messages"][-1]["content"] == "Notes: the parser is faster.", read
        polled = await server.call("poll_assistant", process_id=hanging["process_id"])
        assert polled["process"]["done"], polled
        error = await server.refused("spawn_assistant", assistant_id="log-watcher", query="x")
        assert error["code"] == "no_model", error


def in_words(error):
    """What went wrong and in which line of this file, without the schema that a failed validation repeats."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]
    return f"{type(error).__name__} in lines {lines}: " + str(error).partition("\n\n")[0][:FAILURE_CHARS_MAX]


async def report(label, name, outcome, secs=CHECK_SECS_MAX):
    """Awaits a check and prints how it went. True where it passed."""
    try:
        async with asyncio.timeout(secs):
            await outcome
    except Exception as error:  # one failed check must not hide the next
        print(f"FAIL {label}: {name}: {in_words(error)}", flush=True)
        return False
    print(f"ok   {label}: {name}", flush=True)
    return True


async def main(mode, binary):
    label = f"{mode} {PROTOCOL[mode]}"
    with tempfile.TemporaryDirectory() as folder:
        state = pathlib.Path(folder) / "state"
        passed = []

        async def on_one_connection():
            async with connect(mode, binary, state, FIXTURES / "config.toml") as server:
                passed.extend([await report(label, one.__name__, one(server, mode)) for one in CHECKS])

        passed.append(await report(label, "connects_and_parts", on_one_connection(), secs=len(CHECKS) * CHECK_SECS_MAX))
        passed.append(await report(label, "reads_after_a_restart", reads_after_a_restart(mode, binary, state)))
        stop(binary, state)
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2])))
