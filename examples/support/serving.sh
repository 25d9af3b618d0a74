# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples that serve: start PROGRAM ARGUMENTS... sets $port and $out, stop
# SIGNAL sends one and expects that it ends with 0.
set -euo pipefail
dir=$(mktemp -d)
out=$dir/out
pid=
trap '[ -z "$pid" ] || kill -9 $pid; rm -rf "$dir"' EXIT

await() { # pattern: until the program has printed it
    local tries=0
    until grep -q "$1" "$out"; do
        if ((++tries == 600)); then
            echo "smoke: no '$1'" >&2
            exit 1
        fi
        sleep 0.05
    done
}

start() {
    : >"$out" # what the one before has printed is not its own
    "$@" --port 0 >"$out" &
    pid=$!
    await '^listening on '
    port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$out")
}

stop() {
    kill -"$1" "$pid"
    wait "$pid"
    pid=
}

refuses() { # PROGRAM: bad options
    local option
    for option in '--io carrier-pigeon' '--port' '--port x' 'port'; do
        if "$1" $option 2>/dev/null; then
            echo "smoke: $option was accepted" >&2
            exit 1
        fi
    done
}
