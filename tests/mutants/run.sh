#!/usr/bin/env bash
# Hosts that are broken on purpose: each has to be caught by chaos. `tests/mutants/run.sh [ROUNDS] [NAME...]`
#
# For each patch beside this file the sources are copied to a temporary folder, the patch is applied there, and `chaos`
# is built and played. What is not caught within ROUNDS (50) fails. MUTANTS_TARGET_DIR is where the builds go; kept, it
# makes the next run faster. It must not be the one of the sources: cargo would take the mutant for the host.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-50}
shift || true
names=("$@")
if [ ${#names[@]} = 0 ]; then
    for patch in tests/mutants/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi

work=$(mktemp -d)
# Rounds that have found something are kept by chaos: here they go with the rest.
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
export CARGO_TARGET_DIR=${MUTANTS_TARGET_DIR:-$work/target}

missed=0
for name in "${names[@]}"; do
    # The same place for each, so that only what differs is built again.
    mkdir -p "$work/source"
    git ls-files -z | tar --null --files-from=- -cf - | tar -C "$work/source" -xf -
    patch --quiet -d "$work/source" -p1 <"tests/mutants/$name.patch"
    # The copies are as old as the sources: without this the build of the mutant before would be taken.
    touch "$work/source/host/src/lib.rs"
    (cd "$work/source" && cargo build --locked -q -p conformance --bins)
    echo "== $name: $rounds rounds"
    if "$CARGO_TARGET_DIR/debug/chaos" --rounds "$rounds" --seed 1 >"$work/$name.log"; then
        echo "NOT CAUGHT"
        missed=$((missed + 1))
    else
        grep -m 3 VIOLATION "$work/$name.log" || { tail -5 "$work/$name.log"; missed=$((missed + 1)); }
        tail -1 "$work/$name.log"
    fi
    rm -rf "$work/source" "$work"/chaos-*
done
echo "${#names[@]} mutants, $missed not caught"
[ "$missed" = 0 ]
