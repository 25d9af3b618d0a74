/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a UDP echo server fails with the errors that it can return, and each
 * allocation in turn, while clients - plain sockets, whose calls do not fail - ask and ask again.
 *
 * Whatever fails: who asks again is answered, unless the socket is of no use any more and the
 * server closed; then some handler has heard why. When nothing fails any more an open server
 * answers the first time, and neither memory nor a descriptor is left.
 */
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
#include "support/executor/group.h"
#include "support/executor/messages.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/transport/mailbox.h"

#define QUESTIONS 12 /* of each client: more than one batch */
#define SEGMENT 50   /* of the answers, which are twice as long */
#define TRIES 1000
#define TRY_MS 5
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

/* ---- the server ---- */

struct site {
    const struct backend *backend;
    weir_group *group;
    weir_channel *channel;
    struct address address;
    struct tally opened;
    struct tally closed;
    struct tally errors; /* that handlers have heard, and promises */
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
    weir_datagram_set_segment_size(weir_datagram_of(msg), SEGMENT);
    weir_datagram_return_to_sender(weir_datagram_of(msg));
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

/* With WEIR_TEST_LINE=unix they are Unix datagrams. */
static bool is_unix(void)
{
    return getenv("WEIR_TEST_LINE") != NULL;
}

static weir_address choose_address(void)
{
    char text[WEIR_ADDRESS_TEXT_SIZE] = "127.0.0.1:0";
    weir_address address;

    if (is_unix())
        (void)snprintf(text, sizeof(text), "unix:@weir-faults-%d", (int)getpid());
    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

static int create_channel(weir_channel **ret_channel)
{
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.gro = true, .datagram_size = 4096, .receive_descriptors = true);

    return is_unix() ? weir_unix_create(WEIR_KIND_DATAGRAM, options, ret_channel)
                     : weir_udp_create(options, ret_channel);
}

static int site_bind(struct site *site)
{
    weir_executor *loop = weir_group_at(site->group, 0);
    weir_promise *registered, *bound;
    weir_address address;
    int err = weir_promise_create(loop, &registered);

    if (err < 0)
        return err;
    weir_group_register(site->group, site->channel, registered);
    err = mailbox_result(registered);
    if (err == 0)
        err = weir_promise_create(loop, &bound);
    if (err < 0)
        return err;
    address = choose_address();
    weir_channel_bind(site->channel, &address, bound);
    err = mailbox_result(bound);
    if (err == 0)
        err = weir_channel_local_address(site->channel, &address);
    if (err == 0) {
        site->address.length = address.length;
        memcpy(&site->address.storage, &address.storage, sizeof(address.storage));
    }
    return err;
}

static int site_open(struct site *site, const struct backend *backend)
{
    int err;

    *site = (struct site){.backend = backend};
    err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .name = "site", .io = backend->io,
                                               .uring_receive = backend->ring_receive),
                            &site->group);
    if (err == 0)
        err = create_channel(&site->channel);
    if (err == 0)
        err = weir_pipeline_add_last(weir_channel_pipeline(site->channel), &echo, site);
    return err == 0 ? site_bind(site) : err;
}

static void site_close(struct site *site)
{
    if (site->group != NULL)
        end_group(site->group);
    weir_channel_release(site->channel);
    if (atomic_load(&site->opened.calls) != atomic_load(&site->closed.calls))
        fail_msg("%s: %s: it was opened %u times, closed %u times", site->backend->name, plight,
                 atomic_load(&site->opened.calls), atomic_load(&site->closed.calls));
}

/* ---- a client ---- */

static int client_open(const struct site *site)
{
    struct address own; /* so that it can be answered */
    int client =
        is_unix() ? socket_bind(AF_UNIX, SOCK_DGRAM, &own) : socket_new(AF_INET, SOCK_DGRAM);

    assert_int_equal(
        connect(client, (const struct sockaddr *)&site->address.storage, site->address.length), 0);
    return client;
}

/* Takes what has come; returns how many bytes that was. */
static size_t hear(int client)
{
    char answer[2 * SEGMENT];
    size_t total = 0;
    ssize_t length;

    while ((length = recv(client, answer, sizeof(answer), 0)) > 0)
        total += (size_t)length;
    return total;
}

/* Waits; meanwhile somebody else allocates, because the test's allocator refuses pages for as long
 * as nobody does. */
static void await(int client, short events)
{
    struct pollfd ready = {.fd = client, .events = events};

    (void)poll(&ready, 1, TRY_MS);
    weir__free(weir__alloc(1));
}

/* A Unix socket holds few of them: if it is full the server has yet to run, or to be listened to.
 * Returns how many bytes it has said meanwhile. */
static size_t ask(int client)
{
    char question[2 * SEGMENT] = "?";
    size_t heard = 0;

    for (int i = 0; i < QUESTIONS; i++) {
        if (send(client, question, sizeof(question), MSG_NOSIGNAL) >= 0)
            continue;
        await(client, POLLIN | POLLOUT);
        heard += hear(client);
        (void)send(client, question, sizeof(question), MSG_NOSIGNAL);
    }
    return heard;
}

/* Asks until all is answered at one go, or nobody is there any more. */
static bool is_served(const struct site *site)
{
    int client = client_open(site);
    size_t heard = 0, all = QUESTIONS * 2 * SEGMENT;

    for (int i = 0; i < TRIES && heard < all && weir_channel_is_open(site->channel); i++) {
        if (i % 4 == 0)
            heard = ask(client);
        await(client, POLLIN);
        heard += hear(client);
    }
    assert_int_equal(close(client), 0);
    return heard >= all;
}

/* ---- a play ---- */

static void complain(const struct site *site, const char *about)
{
    fail_msg("%s: %s: %s", site->backend->name, plight, about);
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
    if (!is_served(site)) {
        if (weir_channel_is_open(site->channel))
            complain(site, "a client is not answered");
        if (!tally_await(&site->errors, 1))
            complain(site, "the server is closed, and no handler has heard why");
    }
    end_trouble(site);
    if (weir_channel_is_open(site->channel) && !is_served(site))
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
    if (play_err != 0 && play_err != -err)
        fail_msg("%s: %s: it does not begin: %d", backend->name, plight, play_err);
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
        try(backend, call, n, 3, errors[(n + 1) % count]);
    }
}

static void fail_calls(const struct backend *backend)
{
    uint64_t made[FAULT_COUNT];
    bool memory_failed;

    faults_install();
    (void)snprintf(plight, sizeof(plight), "nothing fails");
    assert_int_equal(play(backend, &memory_failed), 0);
    for (int call = 0; call < FAULT_COUNT; call++)
        made[call] = faults_calls(call);
    for (int call = 0; call < FAULT_COUNT; call++)
        if (made[call] > 0)
            fail_one_kind(backend, call, made[call]);
    faults_remove();
}

TEST_EACH_HOST(udp, survives_each_call_that_fails)
{
    fail_calls(host->backend);
}

/* ---- segments that the system, or a device, does not make ---- */

static void expect_datagram(int receiver, const char *text)
{
    struct pollfd ready = {.fd = receiver, .events = POLLIN};
    char bytes[16] = "";

    assert_int_equal(poll(&ready, 1, TRIES * TRY_MS), 1);
    assert_int_equal(recv(receiver, bytes, sizeof(bytes), 0), strlen(text));
    assert_string_equal(bytes, text);
}

static void send_segments(struct mailbox *box, int receiver)
{
    weir_msg *msg = letter("aaabbbc", NULL);

    weir_datagram_set_segment_size(weir_datagram_of(msg), 3);
    assert_int_equal(mailbox_write(box, msg), 0);
    expect_datagram(receiver, "aaa");
    expect_datagram(receiver, "bbb");
    expect_datagram(receiver, "c");
}

static void refuse_segments(struct host *host, int err)
{
    struct address there;
    int receiver = socket_bind(AF_INET, SOCK_DGRAM, &there);
    weir_address address;
    struct mailbox box;

    assert_int_equal(
        weir_address_from_sockaddr((const struct sockaddr *)&there.storage, there.length, &address),
        0);
    mailbox_make(&box, host, NULL);
    assert_int_equal(mailbox_connect(&box, &address), 0);
    faults_inject(FAULT_SENDMMSG, 1, 1, err);
    send_segments(&box, receiver);
    assert_int_equal(faults_injected(), 1);
    send_segments(&box, receiver);
    mailbox_close(&box);
    (void)close(receiver);
}

TEST_EACH_HOST(udp, makes_segments_itself_if_the_system_does_not)
{
    struct host other;

    faults_install();
    host_open(&other, (enum backend_id)(host->backend - backends));
    refuse_segments(&other, EIO);
    refuse_segments(&other, EINVAL);
    refuse_segments(&other, EMSGSIZE);
    host_close(&other);
    global_settle(); /* it may hold the loop, and close what it had */
    faults_remove();
}

/* ---- a socket that is lost ---- */

struct call {
    struct mailbox box;
    weir_address peer;
    weir_promise *connected;
};

/* That it is connected is told later; but now the loop fails to watch it. */
static void connect_and_read(void *arg, int status)
{
    struct call *call = arg;

    (void)status;
    faults_inject(FAULT_EPOLL_CTL, 1, 1, ENOMEM);
    weir_channel_connect(call->box.channel, &call->peer, NULL, call->connected);
    weir_channel_request_read(call->box.channel);
}

TEST(udp, fails_to_connect_if_its_loop_loses_the_socket)
{
    struct call call;
    struct mailbox there;
    struct host host;

    faults_install();
    host_open(&host, BACKEND_EPOLL);
    mailbox_open(&there, &host, NULL);
    call.peer = there.address;
    mailbox_open(&call.box, &host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    call.connected = mailbox_promise(&call.box);
    assert_int_equal(weir_execute(host.loop, connect_and_read, &call), 0);
    assert_int_equal(mailbox_result(call.connected), -ENOMEM);
    assert_int_equal(faults_injected(), 1);
    mailbox_close(&call.box);
    mailbox_close(&there);
    host_close(&host);
    global_settle();
    faults_remove();
}

/* ---- allocations ---- */

/* Each of the first, then fewer and fewer: later ones are much alike. */
TEST_EACH_HOST(udp, survives_each_allocation_that_fails)
{
    bool failed;
    int err;

    for (unsigned n = 1;; n += 1 + n / 32 * STRIDE) {
        (void)snprintf(plight, sizeof(plight), "allocation %u fails", n);
        test_memory_fail_at(n);
        err = play(host->backend, &failed);
        if (!failed)
            break;
        if (err != 0 && err != -ENOMEM)
            fail_msg("%s: %s: it does not begin: %d", host->backend->name, plight, err);
    }
}
