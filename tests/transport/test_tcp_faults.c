/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of an echo server fails with the errors that it can return, and each allocation
 * in turn, while clients - plain sockets, whose calls do not fail - are served. With
 * WEIR_TEST_LINE=unix or seqpacket they are Unix sockets, at a stale file, and pass descriptors.
 *
 * Whatever fails: no client is left waiting, one that is not served is so for an error that some
 * handler has heard, the next client is served again, and neither memory nor a descriptor is left.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/local.h>
#include <weir/unix.h>

#include "base/memory.h"
#include "support/executor/global.h"
#include "support/executor/messages.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/transport/line.h"

#define CLIENTS 3
#define SIZE 100000      /* that each sends: more than a socket takes at once */
#define PACKET 5000      /* of those that are sent in packets */
#define PATIENCE_MS 5000 /* that a client has */
#define SLICE_MS 50
#define PLACES 40 /* calls of one kind to fail, at the most, or a little more */

/* Only every so many errors and places where it is slow. */
#if defined(__SANITIZE_THREAD__)
#define STRIDE 9
#elif defined(__SANITIZE_ADDRESS__)
#define STRIDE 4
#else
#define STRIDE 1
#endif

/* What fails now, for the report. */
static char plight[128];

/* ---- Unix sockets ---- */

static char folder[] = "/tmp/weir-faults-XXXXXX";

static bool is_unix(void)
{
    return getenv("WEIR_TEST_LINE") != NULL;
}

static enum weir_kind kind(void)
{
    return is_unix() && strcmp(getenv("WEIR_TEST_LINE"), "seqpacket") == 0 ? WEIR_KIND_SEQPACKET
                                                                           : WEIR_KIND_STREAM;
}

static int socket_type(void)
{
    return kind() == WEIR_KIND_SEQPACKET ? SOCK_SEQPACKET : SOCK_STREAM;
}

/* What calls that failed have left of files. */
static void empty_folder(void)
{
    DIR *files = opendir(folder);
    const struct dirent *file;

    assert_non_null(files);
    while ((file = readdir(files)) != NULL)
        (void)unlinkat(dirfd(files), file->d_name, 0);
    closedir(files);
}

static void make_folder(void)
{
    memcpy(strrchr(folder, '-'), "-XXXXXX", 8);
    assert_non_null(mkdtemp(folder));
}

static void remove_folder(void)
{
    empty_folder();
    assert_int_equal(rmdir(folder), 0);
}

static void leave_stale_socket(const weir_address *address)
{
    int descriptor = socket_new(AF_UNIX, SOCK_STREAM);

    assert_int_equal(bind(descriptor, weir_address_sockaddr(address), address->length), 0);
    assert_int_equal(close(descriptor), 0);
}

static weir_address choose_address(void)
{
    char text[WEIR_ADDRESS_TEXT_SIZE] = "127.0.0.1:0";
    weir_address address;

    if (is_unix())
        (void)snprintf(text, sizeof(text), "unix:%s/socket", folder);
    assert_int_equal(weir_address_parse(text, &address), 0);
    if (is_unix()) {
        empty_folder();
        leave_stale_socket(&address);
    }
    return address;
}

/* Sends with a descriptor beside it. */
static ssize_t send_rights(int client, const void *bytes, size_t length)
{
    struct iovec vector = {(void *)(uintptr_t)bytes, length};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(client))] = {0};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(client));
    memcpy(CMSG_DATA(rights), &client, sizeof(client));
    return sendmsg(client, &header, MSG_NOSIGNAL);
}

/* ---- the server ---- */

struct site {
    const struct backend *backend;
    weir_group *group;
    weir_channel *listener;
    struct address address;
    struct tally opened;
    struct tally closed;
    struct tally errors; /* that handlers have heard */
    bool memory_failed;
};

static struct site *site_of(weir_ctx *ctx)
{
    return *(struct site **)weir_ctx_state(ctx);
}

static int keep_pointer(void *state, const void *options)
{
    memcpy(state, &options, sizeof(options));
    return 0;
}

static void on_active(weir_ctx *ctx)
{
    tally_add(&site_of(ctx)->opened);
}

static void on_inactive(weir_ctx *ctx)
{
    tally_add(&site_of(ctx)->closed);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    tally_add(&site_of(ctx)->errors);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct site *),
    .init = keep_pointer,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .error = on_error,
};

static void on_registered(weir_promise *promise, void *site)
{
    if (weir_promise_result(promise) < 0)
        tally_add(&((struct site *)site)->errors);
}

/* What this cannot do for want of memory is an error that it has heard itself. */
static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct site *site = site_of(ctx);
    weir_channel *channel = weir_channel_of(msg);
    weir_promise *promise = NULL;
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, site);

    if (err == 0)
        err = weir_promise_create(weir_ctx_executor(ctx), &promise);
    if (err == 0)
        err = weir_promise_add_listener(promise, on_registered, site);
    if (err == 0)
        weir_group_register(site->group, channel, promise);
    else
        tally_add(&site->errors);
    weir_promise_release(promise);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct site *),
    .init = keep_pointer,
    .read = on_accepted,
    .error = on_error,
};

static int await(weir_promise *promise)
{
    int err;

    assert_int_equal(weir_promise_await(promise, PATIENCE_NS), 0);
    err = weir_promise_result(promise);
    weir_promise_release(promise);
    return err;
}

static int site_bind(struct site *site)
{
    weir_executor *loop = weir_group_at(site->group, 0);
    weir_promise *registered, *bound;
    weir_address address;
    int err = weir_promise_create(loop, &registered);

    if (err < 0)
        return err;
    weir_group_register(site->group, site->listener, registered);
    err = await(registered);
    if (err == 0)
        err = weir_promise_create(loop, &bound);
    if (err < 0)
        return err;
    address = choose_address();
    weir_channel_bind(site->listener, &address, bound);
    err = await(bound);
    if (err == 0)
        err = weir_channel_local_address(site->listener, &address);
    if (err == 0) {
        site->address.length = address.length;
        memcpy(&site->address.storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

static int create_listener(weir_channel **ret_listener)
{
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.send_buffer = 16384, .receive_descriptors = is_unix());

    return is_unix() ? weir_unix_create_server(kind(), WEIR_CHANNEL_OPTIONS(.unix_mode = 0600),
                                               options, ret_listener)
                     : weir_tcp_create_server(NULL, options, ret_listener);
}

static int site_open(struct site *site, const struct backend *backend)
{
    int err;

    *site = (struct site){.backend = backend};
    err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "site", .io = backend->io,
                                               .uring_receive = backend->ring_receive),
                            &site->group);
    if (err == 0)
        err = create_listener(&site->listener);
    if (err == 0)
        err = weir_pipeline_add_last(weir_channel_pipeline(site->listener), &acceptor, site);
    return err == 0 ? site_bind(site) : err;
}

static void site_close(struct site *site)
{
    if (site->group != NULL)
        end_group(site->group);
    weir_channel_release(site->listener);
    if (atomic_load(&site->opened.calls) != atomic_load(&site->closed.calls))
        fail_msg("%s: %s: %u connections were opened, %u closed", site->backend->name, plight,
                 atomic_load(&site->opened.calls), atomic_load(&site->closed.calls));
}

/* ---- a client ---- */

enum outcome {
    SERVED,
    TURNED_AWAY,
    LEFT_WAITING,
};

static ssize_t send_some(int client, const char *bytes, size_t length, bool is_first)
{
    if (kind() == WEIR_KIND_SEQPACKET && length > PACKET)
        length = PACKET;
    return is_unix() && is_first ? send_rights(client, bytes, length)
                                 : send(client, bytes, length, MSG_NOSIGNAL);
}

static int call(const struct address *address)
{
    int client = socket_new(address->storage.ss_family, socket_type());
    int err = connect(client, (const struct sockaddr *)&address->storage, address->length);

    assert_true(err == 0 || errno == EINPROGRESS);
    return client;
}

/* Sends and receives as far as that goes; false at the end of the connection. */
static bool talk(int client, size_t *sent, size_t *received)
{
    static char bytes[SIZE];
    ssize_t length;

    if (*sent < SIZE) {
        length = send_some(client, bytes, SIZE - *sent, *sent == 0);
        if (length < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        *sent += length > 0 ? (size_t)length : 0;
    }
    length = recv(client, bytes, sizeof(bytes), 0);
    if (length == 0 || (length < 0 && errno != EAGAIN && errno != EINTR))
        return false;
    *received += length > 0 ? (size_t)length : 0;
    return true;
}

/* Waits; meanwhile somebody else allocates, because the test's allocator refuses pages for as long
 * as nobody does. */
static bool await_client(struct pollfd *ready)
{
    int slices = PATIENCE_MS / SLICE_MS;

    while (poll(ready, 1, SLICE_MS) == 0) {
        weir__free(weir__alloc(1));
        if (--slices == 0)
            return false;
    }
    return true;
}

static enum outcome visit(const struct site *site)
{
    int client = call(&site->address);
    struct pollfd ready = {.fd = client};
    size_t sent = 0, received = 0;
    enum outcome outcome = LEFT_WAITING;

    for (;;) {
        ready.events = sent < SIZE ? POLLIN | POLLOUT : POLLIN;
        if (!await_client(&ready))
            break;
        if (!talk(client, &sent, &received)) {
            outcome = TURNED_AWAY;
            break;
        }
        if (received == SIZE) {
            outcome = SERVED;
            break;
        }
    }
    assert_int_equal(close(client), 0);
    return outcome;
}

/* ---- a play ---- */

static void complain(const struct site *site, const char *about)
{
    fail_msg("%s: %s: %s", site->backend->name, plight, about);
}

static bool is_broken(const struct site *site)
{
    return test_memory_failed() || faults_injected() > 0 || atomic_load(&site->errors.calls) > 0;
}

/* From now on nothing fails. */
static void end_trouble(struct site *site)
{
    faults_end();
    site->memory_failed = site->memory_failed || test_memory_failed();
    test_memory_fail_at(0);
}

static void serve(struct site *site)
{
    enum outcome outcomes[CLIENTS];
    bool served = true;

    for (int i = 0; i < CLIENTS; i++) {
        outcomes[i] = visit(site);
        if (outcomes[i] == LEFT_WAITING)
            complain(site, "a client is left waiting");
        served = served && outcomes[i] == SERVED;
    }
    if (!served && !is_broken(site))
        complain(site, "a client is turned away for no reason");
    if (!served && !tally_await(&site->errors, 1))
        complain(site, "a client is turned away, and no handler has heard of it");
    end_trouble(site);
    if (!weir_channel_is_open(site->listener) || visit(site) != SERVED)
        complain(site, "the server is not as it was");
}

/* Returns the error that kept it from beginning. The end is not played with: it has no report. */
static int play(const struct backend *backend, bool *ret_memory_failed)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    struct site site;
    int err;

    messages_catch();
    err = site_open(&site, backend);
    if (err == 0)
        serve(&site);
    end_trouble(&site);
    *ret_memory_failed = site.memory_failed;
    site_close(&site);
    global_settle();
    weir_locals_remove_all();
    if (test_memory_live() != blocks)
        complain(&site, "memory is left");
    if (descriptors_open() != descriptors)
        complain(&site, "descriptors are left");
    return err;
}

/* ---- system calls ---- */

static void try(const struct backend *backend, enum fault_call call, uint64_t n, uint64_t count,
                int err)
{
    bool memory_failed;
    int play_err;

    (void)snprintf(plight, sizeof(plight), "%s fails with %d, from the %u. on, %u times",
                   faults_name(call), err, (unsigned)n, (unsigned)count);
    faults_inject(call, n, count, err);
    play_err = play(backend, &memory_failed);
    if (play_err != 0 && play_err != -err && !(is_unix() && play_err == -EADDRINUSE))
        fail_msg("%s: %s: it does not begin: %d", backend->name, plight, play_err);
}

/* Of a ring that cannot be entered several times in a row every client may be one too many until
 * it is through: tests/loop/test_faults.c does that, where the backend alone is looked at. */
static uint64_t times_in_a_row(enum fault_call call)
{
    return call == FAULT_RING_ENTER ? 1 : 3;
}

static void fail_one_kind(const struct backend *backend, enum fault_call call, uint64_t made)
{
    const int *errors = faults_errors(call);
    size_t count = 0;

    for (; errors[count] != 0; count++)
        if (count % STRIDE == 0)
            try(backend, call, 1, 1, errors[count]);
    for (uint64_t n = 2; n <= made; n += STRIDE * (1 + made / PLACES)) {
        try(backend, call, n, 1, errors[n % count]);
        try(backend, call, n, times_in_a_row(call), errors[(n + 1) % count]);
    }
}

static void fail_calls(const struct backend *backend)
{
    uint64_t made[FAULT_COUNT];
    bool memory_failed;

    make_folder();
    faults_install();
    (void)snprintf(plight, sizeof(plight), "nothing fails");
    assert_int_equal(play(backend, &memory_failed), 0);
    for (int call = 0; call < FAULT_COUNT; call++)
        made[call] = faults_calls(call);
    for (int call = 0; call < FAULT_COUNT; call++)
        if (made[call] > 0)
            fail_one_kind(backend, call, made[call]);
    faults_remove();
    remove_folder();
}

TEST_EACH_LOOP(tcp, survives_each_call_that_fails)
{
    fail_calls(host->backend);
}

TEST(tcp, survives_each_call_that_fails_on_threads_of_their_own)
{
    fail_calls(&backends[BACKEND_BLOCKING]);
}

/* ---- allocations ---- */

/* Each of the first, then fewer and fewer: later ones are much alike. */
static void fail_allocations(const struct backend *backend)
{
    bool failed;
    int err;

    make_folder();
    for (unsigned n = 1;; n += 1 + n / 32 * STRIDE) {
        (void)snprintf(plight, sizeof(plight), "allocation %u fails", n);
        test_memory_fail_at(n);
        err = play(backend, &failed);
        if (!failed)
            break;
        if (err != 0 && err != -ENOMEM)
            fail_msg("%s: %s: it does not begin: %d", backend->name, plight, err);
    }
    remove_folder();
}

TEST_EACH_LOOP(tcp, survives_each_allocation_that_fails)
{
    fail_allocations(host->backend);
}

TEST(tcp, survives_each_allocation_that_fails_on_threads_of_their_own)
{
    fail_allocations(&backends[BACKEND_BLOCKING]);
}
