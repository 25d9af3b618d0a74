/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static files over sockets, on every backend.
 */
#include <weir/http_files.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bootstrap/raw_client.h"
#include "support/executor/log_capture.h"
#include "support/loop/backend.h"
#include "support/protocol/http/disk_tree.h"

#define LARGE_SIZE 1000000
#define HUGE_SIZE (INT64_C(64) << 20)
#define SHARED_SIZE 50000

struct site {
    disk_tree *tree;
    weir_http_files_root *root;
    weir_http_server *server;
    char *large;
    enum weir_io io;
};

static void open_site(struct site *site, enum weir_io io, int64_t lifetime_ns)
{
    site->tree = disk_tree_create();
    site->io = io;
    site->large = malloc(LARGE_SIZE);
    assert_non_null(site->large);
    for (size_t i = 0; i < LARGE_SIZE; i++)
        site->large[i] = (char)(i * i >> 3);
    disk_tree_file(site->tree, "root/a.txt", "hello");
    disk_tree_bytes(site->tree, "root/large.bin", site->large, LARGE_SIZE);
    disk_tree_bytes(site->tree, "root/large.txt", site->large, LARGE_SIZE);
    disk_tree_bytes(site->tree, "root/0.bin", site->large, SHARED_SIZE);
    disk_tree_bytes(site->tree, "root/1.bin", site->large, SHARED_SIZE);
    disk_tree_file(site->tree, "root/huge.bin", "");
    disk_tree_truncate(site->tree, "root/huge.bin", HUGE_SIZE);
    assert_int_equal(
        weir_http_files_root_create(
            WEIR_HTTP_FILES_OPTIONS(.root = disk_tree_path(site->tree, "root"),
                                    .cache_lifetime_ns = lifetime_ns, .cache_descriptors = 3),
            &site->root),
        0);
    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .io = io, .threads = 2,
                                     .routes = (const weir_http_route[]){{"GET", "/{path*}",
                                                                          weir_http_files,
                                                                          .user_data = site->root},
                                                                         {0}}),
            &site->server),
        0);
}

static void close_site(struct site *site)
{
    assert_int_equal(weir_http_server_stop(site->server, weir_seconds(10)), 0);
    weir_http_server_release(site->server);
    weir_http_files_root_release(site->root);
    disk_tree_destroy(site->tree);
    free(site->large);
}

/* The number of descriptors of files in trees. */
static int count_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    char target[256];
    int count = 0;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

        target[length > 0 ? length : 0] = '\0';
        count += strstr(target, "/weir-tree-") != NULL;
    }
    closedir(folder);
    return count;
}

/* With a cache that keeps files for a while, and with one that looks them up all the time. */
static void run(enum backend_id id, void (*test)(struct site *site))
{
    static const int64_t lifetimes_ns[] = {0, 1000000};
    struct site site;

    for (int i = 0; i < 2; i++) {
        open_site(&site, backends[id].io, lifetimes_ns[i]);
        test(&site);
        close_site(&site);
        /* Threads that end free their last channels a moment later. */
        for (int n = 0; n < 100000 && count_open_files() > 0; n++)
            (void)sched_yield();
        assert_int_equal(count_open_files(), 0);
    }
}

#define TEST_EACH_HOST(suite, name) \
    BACKEND_TESTS(BACKEND_HOSTS, run, struct site *site, suite##_##name, #suite "." #name)

static int connect_to(const struct site *site)
{
    return raw_client_connect(weir_http_server_server(site->server));
}

static void ask_with(int peer, const char *path, const char *fields)
{
    char request[128];

    (void)snprintf(request, sizeof(request), "GET /%s HTTP/1.1\r\nHost: a\r\n%s\r\n", path, fields);
    raw_client_send(peer, request);
}

static void ask(int peer, const char *path)
{
    ask_with(peer, path, "");
}

/* Threads of backends interrupt each other by signals. */
static ssize_t receive(int peer, void *bytes, size_t size)
{
    ssize_t length;

    do
        length = recv(peer, bytes, size, 0);
    while (length < 0 && errno == EINTR);
    return length;
}

/* Receives a head, byte by byte. Returns the length of the content. */
static int64_t receive_head(int peer, int status)
{
    char head[2048] = "", expected[32];
    const char *length;
    size_t size = 0;

    while (size < 4 || memcmp(head + size - 4, "\r\n\r\n", 4) != 0) {
        assert_true(size + 1 < sizeof(head));
        assert_int_equal(receive(peer, head + size++, 1), 1);
    }
    (void)snprintf(expected, sizeof(expected), "HTTP/1.1 %d ", status);
    assert_memory_equal(head, expected, strlen(expected));
    length = strcasestr(head, "\r\nContent-Length: ");
    assert_non_null(length);
    return strtoll(length + 18, NULL, 10);
}

static void receive_bytes(int peer, const char *bytes, size_t length)
{
    char *received = malloc(length);
    ssize_t got;

    assert_non_null(received);
    for (size_t total = 0; total < length; total += (size_t)got) {
        got = receive(peer, received + total, length - total);
        assert_true(got > 0);
    }
    assert_memory_equal(received, bytes, length);
    free(received);
}

TEST_EACH_HOST(files_sent, are_complete_and_in_order)
{
    int peers[4];

    for (int i = 0; i < 4; i++) {
        peers[i] = connect_to(site);
        ask(peers[i], "a.txt"); /* pipelined */
        ask(peers[i], "large.bin");
        ask(peers[i], "missing");
        ask(peers[i], "a.txt");
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(receive_head(peers[i], 200), 5);
        receive_bytes(peers[i], "hello", 5);
        assert_int_equal(receive_head(peers[i], 200), LARGE_SIZE);
        receive_bytes(peers[i], site->large, LARGE_SIZE);
        receive_bytes(peers[i], "HTTP/1.1 404", 12);
        raw_client_close(peers[i]);
    }
}

static const char *const modes[] = {"", "Accept-Encoding: gzip\r\n"};

static int add_compression(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_http_compression_add(weir_channel_pipeline(channel),
                                     WEIR_HTTP_COMPRESSION_OPTIONS(.level = 1));
}

/* With the filter that compresses: it leaves files alone, whichever thread has opened them. */
TEST_EACH_HOST(files_sent, files_pass_the_compression)
{
    weir_http_server *server = NULL;
    int peer;

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .io = site->io, .threads = 1,
                                     .init_connection = add_compression,
                                     .routes = (const weir_http_route[]){{"GET", "/{path*}",
                                                                          weir_http_files,
                                                                          .user_data = site->root},
                                                                         {0}}),
            &server),
        0);
    peer = raw_client_connect(weir_http_server_server(server));
    for (int i = 0; i < 4; i++) { /* at first from the disk, then from the cache */
        ask_with(peer, "large.txt", modes[i % 2]);
        assert_int_equal(receive_head(peer, 200), LARGE_SIZE);
        receive_bytes(peer, site->large, LARGE_SIZE);
    }
    raw_client_close(peer);
    assert_int_equal(weir_http_server_stop(server, weir_seconds(10)), 0);
    weir_http_server_release(server);
}

struct load {
    const struct site *site;
    const char *expected;
    int requests;
};

static void *download(void *user_data)
{
    static const char *const paths[] = {"large.bin", "large.txt", "a.txt", "0.bin", "1.bin"};
    const struct load *load = user_data;
    int peer = connect_to(load->site);

    for (int i = 0; i < load->requests; i++) {
        const char *path = paths[i % 5];
        bool is_small = strcmp(path, "a.txt") == 0;
        int64_t length;

        ask(peer, path);
        length = receive_head(peer, 200);
        assert_int_equal(length, is_small ? 5 : path[1] == '.' ? SHARED_SIZE : LARGE_SIZE);
        receive_bytes(peer, is_small ? "hello" : load->expected, (size_t)length);
    }
    raw_client_close(peer);
    return NULL;
}

/* Files are looked up, kept, evicted and swept all the time, while they are sent. */
TEST_EACH_HOST(files_sent, are_shared_by_many_connections)
{
    struct load load = {.site = site, .expected = site->large, .requests = 20};
    pthread_t clients[6];

    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, download, &load), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_join(clients[i], NULL), 0);
}

/* Receives until the end, or a reset. Returns the number of bytes. */
static int64_t receive_all(int peer)
{
    char bytes[65536];
    int64_t total = 0;
    ssize_t length;

    while ((length = receive(peer, bytes, sizeof(bytes))) > 0)
        total += length;
    return total;
}

TEST_EACH_HOST(files_sent, a_file_that_becomes_shorter_resets_the_connection)
{
    int peer, other;
    int64_t received;

    log_capture_start();
    peer = connect_to(site);
    ask(peer, "huge.bin");
    assert_int_equal(receive_head(peer, 200), HUGE_SIZE);
    disk_tree_truncate(site->tree, "root/huge.bin", 1);
    received = receive_all(peer);
    assert_true(received > 0 && received < HUGE_SIZE);
    raw_client_close(peer);
    other = connect_to(site); /* and nothing else happens */
    ask(other, "a.txt");
    assert_int_equal(receive_head(other, 200), 5);
    receive_bytes(other, "hello", 5);
    raw_client_close(other);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_log_contains("could not be sent");
}

TEST_EACH_HOST(files_sent, a_client_may_leave_in_the_middle)
{
    int peers[8];

    log_capture_start();
    for (int i = 0; i < 8; i++) {
        peers[i] = connect_to(site);
        ask(peers[i], "huge.bin");
        assert_int_equal(receive_head(peers[i], 200), HUGE_SIZE);
        raw_client_close(peers[i]);
    }
    peers[0] = connect_to(site);
    ask(peers[0], "a.txt");
    assert_int_equal(receive_head(peers[0], 200), 5);
    raw_client_close(peers[0]);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 0);
}
