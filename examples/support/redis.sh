# SPDX-License-Identifier: Apache-2.0
#
# For the smoke scripts of examples that need a Redis server, after serving.sh: start_redis sets
# $redis, its address. Without a redis-server the script ends here, with success unless
# WEIR_REQUIRE=all.
if ! command -v redis-server >/dev/null; then
    echo "smoke: there is no redis-server here" >&2
    [ "${WEIR_REQUIRE:-}" != all ]
    exit
fi

redis_pid=
trap '[ -z "$pid" ] || kill -9 $pid; [ -z "$redis_pid" ] || kill -9 $redis_pid; rm -rf "$dir"' EXIT

start_redis() {
    local tries=0
    redis=unix:$dir/redis
    redis-server --port 0 --unixsocket "$dir/redis" --save '' --dir "$dir" >"$dir/redis.log" &
    redis_pid=$!
    until grep -qi 'ready to accept connections' "$dir/redis.log"; do
        if ((++tries == 600)); then
            echo "smoke: redis-server does not start" >&2
            exit 1
        fi
        sleep 0.05
    done
}

stop_redis() {
    kill -TERM "$redis_pid"
    wait "$redis_pid"
    redis_pid=
}
