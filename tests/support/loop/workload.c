/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end is a handle and its progress. `left` counts the work of all ends of a part; the first
 * error, or the last item of work, closes every end of the part.
 *
 * All streams carry the same bytes, and datagram i is a piece of them determined by i, so the
 * receiver knows what to expect.
 */
#include "support/loop/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/loop/sockets.h"
#include "support/loop/stream.h"
#include "support/test.h"

#define CLIENTS 3              /* the first by TCP, the others by Unix sockets */
#define BYTES (100 * 1024)     /* of each stream */
#define SEND_BUFFER (8 * 1024) /* so that sends are partial */
#define FILE_OFFSET 1000
#define DATAGRAMS 60
#define BATCH 16
#define POLLS 3
#define RETRIES 3 /* after errors that do not end the part */

/* Where the descriptor of each end comes from. */
enum end_id {
    TCP_LISTENER,
    UNIX_LISTENER,
    CLIENT,
    CHILD = CLIENT + CLIENTS,
    LEFT = CHILD + CLIENTS,
    RIGHT,
    FILE_FROM,
    FILE_TO,
    PIPE_OUT,
    PIPE_IN,
    END_COUNT,
};

struct end {
    weir__io_handle handle;
    struct workload *workload;
    enum workload_part part;
    bool attached;
    bool under_way;  /* continues when `sent` is called */
    size_t sent;     /* bytes, datagrams, or polls */
    size_t received; /* the same */
    unsigned retries;
    uint8_t *echo; /* CHILD: received and not sent back yet */
};

struct part {
    unsigned left; /* work left */
    bool ended;
    int err;
};

struct workload {
    weir__io *io;
    void (*over)(void *arg);
    void *arg;
    unsigned attached; /* ends, plus one while starting */
    unsigned accepted;
    int file;
    int descriptors[END_COUNT]; /* until they are attached */
    const char *fault;
    struct part parts[WORKLOAD_PARTS];
    struct address tcp_address, unix_address;
    struct end ends[END_COUNT];
};

static uint8_t bytes[BYTES];

/* ---- parts ---- */

static struct end *end_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, struct end, handle);
}

static enum workload_part part_of(enum end_id id)
{
    return id < LEFT        ? WORKLOAD_ECHO
           : id < FILE_FROM ? WORKLOAD_DATAGRAMS
           : id < PIPE_OUT  ? WORKLOAD_FILE
                            : WORKLOAD_POLL;
}

static void end_part(struct workload *workload, enum workload_part part, int err)
{
    if (workload->parts[part].ended)
        return;
    workload->parts[part].ended = true;
    workload->parts[part].err = err;
    for (int i = 0; i < END_COUNT; i++) {
        struct end *end = &workload->ends[i];

        if (end->part != part || !end->attached)
            continue;
        if (i == PIPE_IN)
            weir__io_detach(&end->handle);
        else
            weir__io_close(&end->handle);
    }
}

static void end_with(struct end *end, int err)
{
    end_part(end->workload, end->part, err);
}

/* The library reported something impossible. */
static void accuse(struct end *end, const char *fault)
{
    if (end->workload->fault == NULL)
        end->workload->fault = fault;
    end_with(end, -EPROTO);
}

static void finish(struct end *end)
{
    if (--end->workload->parts[end->part].left == 0)
        end_part(end->workload, end->part, 0);
}

/* Counts attached ends; the last one ends the workload. */
static void leave(struct workload *workload)
{
    if (--workload->attached == 0)
        workload->over(workload->arg);
}

static void on_detached(weir__io_handle *handle)
{
    struct end *end = end_of(handle);

    end->attached = false;
    if (end == &end->workload->ends[PIPE_IN])
        (void)close(handle->descriptor);
    leave(end->workload);
}

static void on_failed(weir__io_handle *handle, int err)
{
    struct end *end = end_of(handle);

    if (end->workload->parts[end->part].ended)
        accuse(end, "`failed` was called after the close");
    end_with(end, err < 0 ? err : -EPROTO);
}

static void on_read_complete(weir__io_handle *handle)
{
    struct end *end = end_of(handle);

    if (end->workload->parts[end->part].ended)
        accuse(end, "`read_complete` was called after the close");
}

/* ---- streams ---- */

static bool is_child(const struct end *end)
{
    return end->echo != NULL;
}

/* Two pieces if there is enough: a vector is sent by another call than a single block. */
static ssize_t send_bytes(struct end *end, const uint8_t *from, size_t length)
{
    size_t half = end == &end->workload->ends[CLIENT] ? length / 2 : 0;
    struct iovec vector[2];

    if (half == 0) {
        vector[0] = (struct iovec){(void *)(uintptr_t)from, length};
        return weir__io_send(&end->handle, vector, 1);
    }
    vector[0] = (struct iovec){(void *)(uintptr_t)from, half};
    vector[1] = (struct iovec){(void *)(uintptr_t)(from + half), length - half};
    return weir__io_send(&end->handle, vector, 2);
}

static ssize_t send_piece(struct end *end, size_t length)
{
    if (end == &end->workload->ends[FILE_FROM])
        return weir__io_send_file(&end->handle, end->workload->file,
                                  (off_t)(FILE_OFFSET + end->sent), length);
    return send_bytes(end, (is_child(end) ? end->echo : bytes) + end->sent, length);
}

static void send_more(struct end *end)
{
    size_t goal = is_child(end) ? end->received : BYTES;
    ssize_t count;

    if (end->sent == goal || end->under_way)
        return;
    count = send_piece(end, goal - end->sent);
    if (count == WEIR__IO_LENT)
        count = 0;
    if (count < 0) {
        end_with(end, (int)count);
        return;
    }
    end->sent += (size_t)count;
    end->under_way = end->sent < goal;
}

/* A child that cannot send does not receive, as a server should. */
static void echo(struct end *end)
{
    send_more(end);
    if (end->workload->parts[end->part].ended)
        return;
    if (end->under_way)
        weir__io_receive_stop(&end->handle);
    else
        weir__io_receive_start(&end->handle, false);
}

static void on_sent(weir__io_handle *handle, ssize_t count)
{
    struct end *end = end_of(handle);

    if (!end->under_way) {
        accuse(end, "`sent` was called without a pending send");
        return;
    }
    if (count < 0) {
        end_with(end, (int)count);
        return;
    }
    end->under_way = false;
    end->sent += (size_t)count;
    if (is_child(end))
        echo(end);
    else
        send_more(end);
}

static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    struct end *end = end_of(handle);
    const weir__io_memory *memory = &end->workload->io->memory;
    bool right = length > 0 && length <= BYTES - end->received &&
                 memcmp(block->base, bytes + end->received, length) == 0;

    if (right && is_child(end))
        memcpy(end->echo + end->received, block->base, length);
    memory->free(memory->arg, block);
    if (!right) {
        accuse(end, "a stream has brought other bytes than were sent");
        return;
    }
    end->received += length;
    if (is_child(end))
        echo(end);
    else if (end->received == BYTES)
        finish(end);
}

static void on_receive_ended(weir__io_handle *handle, int err)
{
    struct end *end = end_of(handle);

    end_with(end, err < 0
                      ? err
                      : -ENODATA); /* the end that has everything closes first: this is too early */
}

static void on_connected(weir__io_handle *handle, int err)
{
    struct end *end = end_of(handle);

    if (err < 0) {
        end_with(end, err);
        return;
    }
    weir__io_receive_start(handle, false);
    send_more(end);
}

static const weir__io_owner stream_owner = {
    .connected = on_connected,
    .received = on_received,
    .receive_ended = on_receive_ended,
    .read_complete = on_read_complete,
    .sent = on_sent,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- datagrams ---- */

static size_t datagram_length(size_t i)
{
    return i * 37 % 500;
}

static void send_datagrams(struct end *end)
{
    size_t goal = end == &end->workload->ends[LEFT] ? DATAGRAMS : end->received;
    struct mmsghdr messages[BATCH] = {0};
    struct iovec vectors[BATCH];
    size_t count;
    ssize_t taken;

    while (end->sent < goal && !end->under_way) {
        for (count = 0; count < BATCH && end->sent + count < goal; count++) {
            size_t i = end->sent + count;

            vectors[count] = (struct iovec){bytes + i, datagram_length(i)};
            messages[count].msg_hdr = (struct msghdr){.msg_iov = &vectors[count], .msg_iovlen = 1};
        }
        taken = weir__io_send_datagrams(&end->handle, messages, count);
        if (taken < 0) {
            end_with(end, (int)taken);
            return;
        }
        end->sent += (size_t)taken;
        end->under_way = (size_t)taken < count;
    }
}

static bool is_next_datagram(const struct end *end, const weir__io_datagram *datagram)
{
    return end->received < DATAGRAMS && datagram->length == datagram_length(end->received) &&
           memcmp(datagram->block.base, bytes + end->received, datagram->length) == 0;
}

static void on_datagrams(weir__io_handle *handle, const weir__io_datagram *datagrams, size_t count)
{
    struct end *end = end_of(handle);
    const weir__io_memory *memory = &end->workload->io->memory;
    bool right = true;

    for (size_t i = 0; i < count; i++) {
        right = right && is_next_datagram(end, &datagrams[i]);
        end->received++;
        memory->free(memory->arg, &datagrams[i].block);
    }
    if (!right)
        accuse(end, "another datagram has come than was sent");
    else if (end == &end->workload->ends[RIGHT])
        send_datagrams(end);
    else if (end->received == DATAGRAMS)
        finish(end);
}

/* A datagram socket may receive again after an error. */
static void on_datagrams_ended(weir__io_handle *handle, int err)
{
    struct end *end = end_of(handle);

    if (err == 0)
        accuse(end, "datagrams have ended as if they were a stream");
    else if (++end->retries > RETRIES)
        end_with(end, err);
    else
        weir__io_receive_start(handle, false);
}

static void on_room_for_datagrams(weir__io_handle *handle, ssize_t count)
{
    struct end *end = end_of(handle);

    end->under_way = false;
    if (count < 0)
        end_with(end, (int)count);
    else
        send_datagrams(end);
}

static const weir__io_owner datagram_owner = {
    .received_datagrams = on_datagrams,
    .receive_ended = on_datagrams_ended,
    .read_complete = on_read_complete,
    .sent = on_room_for_datagrams,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- polls ---- */

/* Readiness may be spurious, as poll(2) warns. */
static void on_polled(weir__io_handle *handle, unsigned events)
{
    struct end *end = end_of(handle);
    bool writes = end == &end->workload->ends[PIPE_OUT];
    uint8_t byte = 'p';
    ssize_t count;

    if ((events & (writes ? POLLOUT : POLLIN)) == 0) {
        accuse(end, "a poll reported events that were not requested");
        return;
    }
    count = writes ? write(handle->descriptor, &byte, 1) : read(handle->descriptor, &byte, 1);
    if (count == 1 && ++end->sent == POLLS) {
        weir__io_poll_stop(handle);
        finish(end);
    }
}

static const weir__io_owner poll_owner = {
    .polled = on_polled,
    .failed = on_failed,
    .detached = on_detached,
};

/* ---- attaching ---- */

static struct end *attach(struct workload *workload, enum end_id id, const weir__io_owner *owner)
{
    struct end *end = &workload->ends[id];
    int err;

    if (workload->parts[end->part].ended)
        return NULL;
    weir__io_handle_init(&end->handle, workload->descriptors[id], owner);
    end->handle.datagrams = owner == &datagram_owner;
    err = weir__io_attach(workload->io, &end->handle);
    if (err < 0) {
        end_with(end, err);
        return NULL;
    }
    workload->descriptors[id] = -1; /* owned by the handle now */
    workload->attached++;
    end->attached = true;
    return end;
}

/* With TCP a small buffer would wait for acknowledgements, and those for a timer. */
static void tune(int descriptor, int family)
{
    int size = SEND_BUFFER, yes = 1;

    if (family == AF_UNIX)
        (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    else
        (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static void attach_child(struct workload *workload, int descriptor)
{
    enum end_id id = CHILD + workload->accepted++;
    struct end *child;

    workload->descriptors[id] = descriptor;
    child = attach(workload, id, &stream_owner);
    if (child != NULL)
        weir__io_receive_start(&child->handle, false);
}

static void on_accepted(weir__io_handle *handle, int descriptor, const struct sockaddr *peer,
                        socklen_t peer_length)
{
    struct end *end = end_of(handle);

    (void)peer;
    (void)peer_length;
    if (descriptor >= 0 && end->workload->accepted < CLIENTS) {
        tune(descriptor, end == &end->workload->ends[TCP_LISTENER] ? AF_INET : AF_UNIX);
        attach_child(end->workload, descriptor);
    } else if (descriptor >= 0) {
        (void)close(descriptor);
        accuse(end, "more connections have come than were made");
    } else if (++end->retries > RETRIES) {
        end_with(end, descriptor);
    } else {
        weir__io_accept_start(handle);
    }
}

static const weir__io_owner listener_owner = {
    .accepted = on_accepted,
    .read_complete = on_read_complete,
    .failed = on_failed,
    .detached = on_detached,
};

static void attach_listener(struct workload *workload, enum end_id id)
{
    struct end *listener = attach(workload, id, &listener_owner);

    if (listener != NULL)
        weir__io_accept_start(&listener->handle);
}

static void attach_client(struct workload *workload, enum end_id id)
{
    struct end *client = attach(workload, id, &stream_owner);
    const struct address *address;

    if (client == NULL)
        return;
    address = id == CLIENT ? &workload->tcp_address : &workload->unix_address;
    weir__io_connect(&client->handle, (const struct sockaddr *)&address->storage, address->length);
}

static void attach_datagrams(struct workload *workload)
{
    struct end *right = attach(workload, RIGHT, &datagram_owner);
    struct end *left = attach(workload, LEFT, &datagram_owner);

    if (left == NULL || right == NULL)
        return;
    weir__io_receive_start(&right->handle, false);
    weir__io_receive_start(&left->handle, false);
    send_datagrams(left);
}

static void attach_file(struct workload *workload)
{
    struct end *to = attach(workload, FILE_TO, &stream_owner);
    struct end *from = attach(workload, FILE_FROM, &stream_owner);

    if (to == NULL || from == NULL)
        return;
    weir__io_receive_start(&to->handle, false);
    send_more(from);
}

static void attach_pipe(struct workload *workload)
{
    struct end *in = attach(workload, PIPE_IN, &poll_owner);
    struct end *out = attach(workload, PIPE_OUT, &poll_owner);

    if (in == NULL || out == NULL)
        return;
    weir__io_poll_start(&in->handle, POLLIN);
    weir__io_poll_start(&out->handle, POLLOUT);
}

void workload_start(struct workload *workload, weir__io *io, void (*over)(void *arg), void *arg)
{
    workload->io = io;
    workload->over = over;
    workload->arg = arg;
    workload->attached = 1;
    attach_listener(workload, TCP_LISTENER);
    attach_listener(workload, UNIX_LISTENER);
    for (int i = 0; i < CLIENTS; i++)
        attach_client(workload, CLIENT + i);
    attach_datagrams(workload);
    attach_file(workload);
    attach_pipe(workload);
    leave(workload);
}

/* ---- before and after ---- */

static int make_file(void)
{
    int file = memfd_create("workload", MFD_CLOEXEC);

    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, BYTES, FILE_OFFSET), BYTES);
    return file;
}

static int make_client(int family)
{
    int descriptor = socket_new(family, SOCK_STREAM);

    tune(descriptor, family);
    return descriptor;
}

static void make_descriptors(struct workload *workload)
{
    int *descriptors = workload->descriptors;
    int ends[2];

    descriptors[TCP_LISTENER] = socket_listen(AF_INET, CLIENTS, &workload->tcp_address);
    descriptors[UNIX_LISTENER] = socket_listen(AF_UNIX, CLIENTS, &workload->unix_address);
    for (int i = 0; i < CLIENTS; i++)
        descriptors[CLIENT + i] = make_client(i == 0 ? AF_INET : AF_UNIX);
    socket_pair(PAIR_UNIX_DATAGRAM, &descriptors[LEFT]);
    socket_pair(PAIR_UNIX, &descriptors[FILE_FROM]);
    tune(descriptors[FILE_FROM], AF_UNIX);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    descriptors[PIPE_IN] = ends[0];
    descriptors[PIPE_OUT] = ends[1];
    workload->file = make_file();
}

struct workload *workload_open(void)
{
    struct workload *workload = calloc(1, sizeof(*workload));
    struct stream stream = {0};

    assert_non_null(workload);
    stream_write(&stream, bytes, sizeof(bytes));
    for (int i = 0; i < END_COUNT; i++) {
        workload->ends[i].workload = workload;
        workload->ends[i].part = part_of(i);
        workload->descriptors[i] = -1;
    }
    for (int i = 0; i < CLIENTS; i++) {
        workload->ends[CHILD + i].echo = malloc(BYTES);
        assert_non_null(workload->ends[CHILD + i].echo);
    }
    workload->parts[WORKLOAD_ECHO].left = CLIENTS;
    workload->parts[WORKLOAD_DATAGRAMS].left = 1;
    workload->parts[WORKLOAD_FILE].left = 1;
    workload->parts[WORKLOAD_POLL].left = 2;
    make_descriptors(workload);
    return workload;
}

void workload_close(struct workload *workload)
{
    for (int i = 0; i < END_COUNT; i++)
        if (workload->descriptors[i] >= 0)
            (void)close(workload->descriptors[i]);
    for (int i = 0; i < CLIENTS; i++)
        free(workload->ends[CHILD + i].echo);
    (void)close(workload->file);
    free(workload);
}

int workload_error(const struct workload *workload)
{
    int err = 0;

    for (int i = 0; i < WORKLOAD_PARTS && err == 0; i++)
        err = workload->parts[i].err;
    return err;
}

const char *workload_fault(const struct workload *workload)
{
    return workload->fault;
}

void workload_describe(const struct workload *workload, char *text, size_t size)
{
    static const char *const names[WORKLOAD_PARTS] = {"echo", "datagrams", "file", "poll"};
    size_t used = 0;

    for (int i = 0; i < WORKLOAD_PARTS && used < size; i++) {
        const struct part *part = &workload->parts[i];

        used += (size_t)snprintf(text + used, size - used, "%s: %s %d, %u left; ", names[i],
                                 part->ended ? "ended" : "goes on", part->err, part->left);
    }
    for (int i = 0; i < END_COUNT && used < size; i++) {
        const struct end *end = &workload->ends[i];

        if (end->attached)
            used += (size_t)snprintf(text + used, size - used, "end %d: %zu sent, %zu received; ",
                                     i, end->sent, end->received);
    }
}
