/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of an echo server fails with the errors that it can return, and each allocation
 * in turn, while clients - plain sockets, whose calls do not fail - are served. With
 * WEIR_TEST_CONNECTION=unix or seqpacket they are Unix sockets, at a stale file, and pass
 * descriptors.
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

#include <weir/transport.h>

#include "base/memory.h"
#include "support/channel/pointer_state.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"
#include "support/transport/faulty_server.h"

#define CLIENTS 3
#define SIZE 100000 /* that each sends: more than a socket takes at once */
#define PACKET 5000 /* of those that are sent in packets */
#define SLICE_MS 50
#define PLACES 40 /* calls of one kind to fail, at the most, or a little more */

/* ---- Unix sockets ---- */

static char folder[] = "/tmp/weir-faults-XXXXXX";

static bool is_unix(void)
{
    return getenv("WEIR_TEST_CONNECTION") != NULL;
}

static enum weir_kind kind(void)
{
    return is_unix() && strcmp(getenv("WEIR_TEST_CONNECTION"), "seqpacket") == 0
               ? WEIR_KIND_SEQPACKET
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

static void on_registered(weir_promise *promise, void *faulty)
{
    if (weir_promise_result(promise) < 0)
        call_counter_add(&((struct faulty_server *)faulty)->errors);
}

/* What this cannot do for want of memory is an error that it has heard itself. */
static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    struct faulty_server *faulty = faulty_server_of(ctx);
    weir_channel *channel = weir_channel_of(msg);
    weir_promise *promise = NULL;
    int err = faulty_server_add(faulty, channel, &faulty_server_echo);

    if (err == 0)
        err = weir_promise_create(weir_ctx_executor(ctx), &promise);
    if (err == 0)
        err = weir_promise_add_listener(promise, on_registered, faulty);
    if (err == 0)
        weir_group_register(faulty->group, channel, promise);
    else
        call_counter_add(&faulty->errors);
    weir_promise_release(promise);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {
    .name = "acceptor",
    .state_size = sizeof(struct faulty_server *),
    .init = pointer_keep,
    .read = on_accepted,
};

static int create_listener(weir_channel **ret_listener)
{
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.send_buffer = 16384, .receive_descriptors = is_unix());

    return is_unix() ? weir_unix_create_server(kind(), WEIR_CHANNEL_OPTIONS(.unix_mode = 0600),
                                               options, ret_listener)
                     : weir_tcp_create_server(NULL, options, ret_listener);
}

static int open_listener(struct faulty_server *faulty)
{
    weir_address address;
    int err = create_listener(&faulty->channel);

    if (err == 0)
        err = faulty_server_add(faulty, faulty->channel, &acceptor);
    if (err < 0)
        return err;
    address = choose_address();
    return faulty_server_bind(faulty, &address);
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
    int slices = (int)(TEST_TIMEOUT_NS / weir_ms(SLICE_MS));

    while (poll(ready, 1, SLICE_MS) == 0) {
        weir__free(weir__alloc(1));
        if (--slices == 0)
            return false;
    }
    return true;
}

static enum outcome visit(const struct faulty_server *faulty)
{
    int client = call(&faulty->address);
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

static bool is_broken(const struct faulty_server *faulty)
{
    return sweep_has_failed(faulty->sweep) || atomic_load(&faulty->errors.calls) > 0;
}

static void serve(struct faulty_server *faulty)
{
    enum outcome outcomes[CLIENTS];
    bool served = true;

    for (int i = 0; i < CLIENTS; i++) {
        outcomes[i] = visit(faulty);
        if (outcomes[i] == LEFT_WAITING)
            sweep_fail(faulty->sweep, "a client is left waiting");
        served = served && outcomes[i] == SERVED;
    }
    if (!served && !is_broken(faulty))
        sweep_fail(faulty->sweep, "a client is turned away for no reason");
    if (!served && !call_counter_await(&faulty->errors, 1))
        sweep_fail(faulty->sweep, "a client is turned away, and no handler has heard of it");
    sweep_stop_faults(faulty->sweep);
    if (!weir_channel_is_open(faulty->channel) || visit(faulty) != SERVED)
        sweep_fail(faulty->sweep, "the server is not as it was");
}

static const struct faulty_server_run play = {.open = open_listener, .serve = serve};

/* Of a ring that cannot be entered several times in a row every client may be one too many until
 * it is through: tests/loop/test_faults.c does that, where the backend alone is looked at. */
static void sweep_all(const struct backend *backend, void (*sweep_it)(struct sweep *sweep))
{
    struct sweep sweep = {.backend = backend,
                          .scenario = faulty_server_run,
                          .arg = &play,
                          .places = PLACES,
                          .stride = SWEEP_STRIDE,
                          .ring_fails_once = true,
                          .allowed_error = is_unix() ? -EADDRINUSE : 0};

    make_folder();
    sweep_it(&sweep);
    remove_folder();
}

TEST_EACH_LOOP(tcp, survives_each_call_that_fails)
{
    sweep_all(host->backend, sweep_calls);
}

TEST(tcp, survives_each_call_that_fails_on_threads_of_their_own)
{
    sweep_all(&backends[BACKEND_BLOCKING], sweep_calls);
}

TEST_EACH_LOOP(tcp, survives_each_allocation_that_fails)
{
    sweep_all(host->backend, sweep_allocations);
}

TEST(tcp, survives_each_allocation_that_fails_on_threads_of_their_own)
{
    sweep_all(&backends[BACKEND_BLOCKING], sweep_allocations);
}
