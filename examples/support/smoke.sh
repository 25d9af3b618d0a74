# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples: $dir is a directory of this run, $out the output of the
# program. A script that fails prints its last steps and the output; so does one that takes too
# long, shortly before ctest kills it. Cleans up at the end.
export NODE_OPTIONS=--dns-result-order=ipv4first # Node 18 tries one address of "localhost"
set -euo pipefail
dir=$(mktemp -d)
out=$dir/out
pid=      # of the program in the background
others=() # that must not stay behind, either

exec {trace}>"$dir/trace"
BASH_XTRACEFD=$trace
PS4='+ ${BASH_SOURCE[0]##*/}:$LINENO: '

report() { # each step once, where it was last: they may have been made in a loop
    local file
    echo "smoke: ended with status $1 after these steps:"
    tac "$dir/trace" | sed '1,/ at_end$/d; / exit 143$/d' | awk '!seen[$0]++ && ++shown <= 25' | tac
    for file in "$dir"/{out,err,s_client,redis.log}; do
        [ ! -s "$file" ] || tail -n 10 -v "$file"
    done
}

at_end() {
    local status=$?
    set +ex
    [ $status = 0 ] || report $status >&2
    exec 2>/dev/null # that somebody was killed is no news
    kill -9 $pid "${others[@]}" $(jobs -p)
    rm -rf "$dir"
}
trap at_end EXIT
trap 'exit 143' TERM

# Kills the process that the shell waits for, too: until it ends the shell handles no signal.
watch_over() { # SECONDS
    set +x
    read -r -t "$1" <>"$dir/never" || true
    echo "smoke: it takes longer than $1 s" >&2
    kill -TERM $$ $(tr ' ' '\n' <"/proc/$$/task/$$/children" | grep -vx $BASHPID) 2>/dev/null
}
mkfifo "$dir/never"
watch_over $((${WEIR_TEST_TIMEOUT:-120} * 9 / 10)) &
set -x

until_true() { # COMMAND...: 30 s at the longest
    local tries=0
    until "$@"; do
        if ((++tries == 600)); then
            echo "smoke: in vain: $*" >&2
            exit 1
        fi
        sleep 0.05
    done
}

await() { # PATTERN: until the program has printed it
    until_true grep -q "$1" "$out"
}

heeds() { # PID SIGNAL: whether it would be told of the signal, and not be ended by it
    local - mask number
    set +x
    number=$(kill -l "$2")
    for mask in $(sed -n 's/^Sig\(Blk\|Cgt\):\t/0x/p' "/proc/$1/status"); do
        if ((mask >> (number - 1) & 1)); then
            return 0
        fi
    done
    return 1
}
