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

start_redis() {
    redis=unix:$dir/redis
    redis-server --port 0 --unixsocket "$dir/redis" --save '' --dir "$dir" >"$dir/redis.log" &
    redis_pid=$!
    until_true grep -qi 'ready to accept connections' "$dir/redis.log"
}

stop_redis() {
    kill -TERM "$redis_pid"
    wait "$redis_pid"
}
