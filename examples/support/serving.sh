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

holds_back() { # FIRST WORD [LINES]: who says this over and over, and does not listen
    python3 "$(dirname "${BASH_SOURCE[0]}")/flood.py" "$port" "$@"
}

refuses() { # PROGRAM: rejects bad options by name, and prints its usage at --help
    local option words status
    while IFS='|' read -r option words; do
        status=0
        "$1" $option </dev/null 2>"$dir/refused" || status=$?
        if [ $status != 2 ] || ! grep -qF -e "$words" "$dir/refused"; then
            echo "smoke: $option exit status $status, or missing: $words" >&2
            exit 1
        fi
    done <<'END'
--io carrier-pigeon|invalid --io "carrier-pigeon"
--port|--port needs a value
--port x|invalid --port "x"
--port 65536|invalid --port "65536"
port|unknown option port
END
    "$1" --help | grep -q '^usage: '
}
