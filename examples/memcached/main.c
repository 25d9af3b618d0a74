/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memcached server, text protocol. Items are divided among the loops: a command travels to the loop
 * that owns its key, and returns with the answer.
 *     memcached [--port 11211] [--memory MIB] [--max-item BYTES] [--io auto|epoll|uring|poll]
 *               [--threads N] [--boss-threads N] [--tls] [--cert FILE] [--key FILE]
 *
 * command.c parses commands, session.c routes them, shard.c executes them, store.c holds the items.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

#include "session.h"
#include "support/settings.h"
#include "support/tls.h"

struct server {
    weir_tls_context *tls; /* NULL = none */
    struct cache cache;
};

static int init_child(weir_channel *channel, void *user_data)
{
    struct server *server = user_data;
    int err = tls_add(weir_channel_pipeline(channel), server->tls);

    return err ? err : session_init(channel, &server->cache);
}

static size_t take_number(int *argc, char **argv, const char *name, size_t otherwise, size_t max)
{
    const char *text = settings_take(argc, argv, name);
    char *end;
    unsigned long number = text != NULL ? strtoul(text, &end, 10) : otherwise;

    if (text == NULL || (*text != '\0' && *end == '\0' && number > 0 && number <= max))
        return number;
    fprintf(stderr, "memcached: invalid %s \"%s\"\n", name, text);
    exit(2);
}

static int serve_cache(const struct settings *settings, struct server *self, weir_group *boss,
                       weir_group *workers)
{
    weir_server *server = NULL;
    int err = weir_server_start(
        WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings->address,
                            .acceptors = settings->boss_threads, .init_child = init_child,
                            .user_data = self,
                            .child_options = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
        &server);

    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    weir_server_release(server);
    return err;
}

int main(int argc, char **argv)
{
    size_t mib = take_number(&argc, argv, "--memory", 64, 1 << 20);
    size_t item_max = take_number(&argc, argv, "--max-item", 1 << 20, 1 << 27);
    struct settings settings = settings_read_tls(argc, argv, "127.0.0.1", 11211);
    weir_group *boss = NULL, *workers = NULL;
    struct server self = {.tls = NULL};
    int err;

    if (settings.io == WEIR_IO_BLOCKING) {
        fprintf(stderr,
                "memcached: --io blocking is not supported: keys are divided among loops\n");
        return 2;
    }
    err = settings_make_groups(&settings, &boss, &workers);
    if (!err)
        err = tls_make_server(&settings, &self.tls);
    if (!err)
        err = cache_init(&self.cache, workers, mib << 20, item_max);
    if (!err)
        err = serve_cache(&settings, &self, boss, workers);
    if (err)
        fprintf(stderr, "memcached: %s\n", weir_error_text(err));
    weir_group_release(workers); /* first: their tasks use the shards */
    weir_group_release(boss);
    cache_deinit(&self.cache);
    tls_release(self.tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
