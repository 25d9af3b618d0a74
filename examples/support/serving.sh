# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples that serve: start PROGRAM ARGUMENTS... sets $port and $pid, stop
# SIGNAL sends one and expects that it ends with 0.
. "$(dirname "${BASH_SOURCE[0]}")/smoke.sh"

start() {
    : >"$out" # what the one before has printed is not its own
    "$@" --port 0 >"$out" &
    pid=$!
    await '^listening on '
    until_true heeds "$pid" TERM # it listens a moment before
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
