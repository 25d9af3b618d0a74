/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams, on each backend. The first bytes of each are its number; the rest is from the stream
 * with that seed.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "support/loop/suite.h"

#define SIZE_MAX_USED 2000
#define BATCH 40

/* ---- the datagrams ---- */

struct letter {
    char memory[SIZE_MAX_USED];
    size_t length;
};

static struct letter write_letter(uint32_t number, size_t length)
{
    struct letter letter = {.length = length};
    struct stream stream = {.seed = number};

    stream_write(&stream, letter.memory, length);
    memcpy(letter.memory, &number, length < sizeof(number) ? length : sizeof(number));
    return letter;
}

static void post(int descriptor, uint32_t number, size_t length)
{
    struct letter letter = write_letter(number, length);

    assert_int_equal(send(descriptor, letter.memory, length, 0), length);
}

static size_t size_of(uint32_t number)
{
    return 4 + (number * 37) % (SIZE_MAX_USED - 4);
}

/* They come in order: the next number, its length, its bytes. */
static void expect_next(struct peer *peer, const weir__io_datagram *datagram)
{
    uint32_t number = peer->datagrams - 1;
    struct letter expected = write_letter(number, size_of(number));

    if (datagram->length != expected.length ||
        memcmp(datagram->block.base, expected.memory, expected.length) != 0 ||
        (datagram->header->msg_flags & MSG_TRUNC) != 0)
        driver_fail(peer->driver, "datagram %u is not what was sent", number);
}

static struct peer *open_receiver(struct driver *driver, enum pair_kind kind)
{
    struct peer *peer = peer_open_pair(driver, kind);

    peer->on_datagram = expect_next;
    return peer;
}

/* ---- receiving ---- */

static void receive_batches(struct driver *driver, enum pair_kind kind, uint32_t count)
{
    struct peer *peer = open_receiver(driver, kind);

    for (uint32_t i = 0; i < count; i++)
        post(peer->remote, i, size_of(i));
    peer_receive_start(peer, false);
    driver_until(driver, peer->datagrams == count);
    for (uint32_t i = count; i < 2 * count; i++) {
        post(peer->remote, i, size_of(i));
        driver_until(driver, peer->datagrams == i + 1);
    }
    driver_run_until_idle(driver);
}

TEST_EACH_BACKEND(datagram, come_in_order_sixteen_a_turn_at_most)
{
    receive_batches(driver, PAIR_UDP, BATCH);
}

TEST_EACH_BACKEND(datagram, come_over_unix_sockets_too)
{
    receive_batches(driver, PAIR_UNIX_DATAGRAM, 10);
}

TEST_EACH_BACKEND(datagram, of_no_length_is_one_and_not_the_end)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UDP);

    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 5; i++) {
        assert_int_equal(send(peer->remote, "", 0, 0), 0);
        driver_until(driver, peer->datagrams == i);
    }
    assert_int_equal(peer->bytes, 0);
    assert_int_equal(peer->ends, 0);
}

static void expect_cut(struct peer *peer, const weir__io_datagram *datagram)
{
    struct letter letter = write_letter(0, 500);

    if (datagram->length != 100 || (datagram->header->msg_flags & MSG_TRUNC) == 0 ||
        memcmp(datagram->block.base, letter.memory, 100) != 0)
        driver_fail(peer->driver, "%zu bytes, flags 0x%x", datagram->length,
                    (unsigned)datagram->header->msg_flags);
}

TEST_EACH_BACKEND(datagram, longer_than_the_window_is_marked_truncated)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UDP);

    peer->handle->window = 100;
    driver->memory.extra = 50;
    peer->on_datagram = expect_cut;
    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 20; i++) {
        post(peer->remote, 0, 500);
        if (i % 4 == 0)
            driver_until(driver, peer->datagrams == i);
    }
}

TEST_EACH_BACKEND(datagram, once_delivers_one_batch)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);
    uint32_t before;

    for (uint32_t i = 0; i < BATCH; i++)
        post(peer->remote, i, size_of(i));
    do {
        before = peer->datagrams;
        peer_receive_start(peer, true);
        driver_until(driver, peer->datagrams > before);
        before = peer->datagrams;
        driver_run_until_idle(driver);
        assert_int_equal(peer->datagrams, before);
    } while (peer->datagrams < BATCH);
}

static void stop_receiving(struct peer *peer, enum peer_event event)
{
    if (event == PEER_DATAGRAMS)
        peer_receive_stop(peer);
}

TEST_EACH_BACKEND(datagram, stopped_in_the_call_back_are_not_lost)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);

    peer->react = stop_receiving;
    for (uint32_t i = 0; i < BATCH; i++)
        post(peer->remote, i, size_of(i));
    while (peer->datagrams < BATCH) {
        unsigned before = peer->datagrams;

        peer_receive_start(peer, false);
        driver_until(driver, peer->datagrams > before);
        before = peer->datagrams;
        driver_turn(driver);
        assert_int_equal(peer->datagrams, before);
    }
}

static void close_peer(struct peer *peer, enum peer_event event)
{
    if (event == PEER_DATAGRAMS)
        peer_close(peer);
}

TEST_EACH_BACKEND(datagram, nothing_is_delivered_after_a_close_in_the_callback)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);

    peer->react = close_peer;
    for (uint32_t i = 0; i < BATCH; i++)
        post(peer->remote, i, size_of(i));
    peer_receive_start(peer, false);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "dx");
}

TEST_EACH_BACKEND(datagram, wait_for_memory)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);

    driver->memory.refuse = SIZE_MAX;
    for (uint32_t i = 0; i < BATCH; i++)
        post(peer->remote, i, size_of(i));
    peer_receive_start(peer, false);
    for (unsigned i = 0; i < 2000 && driver->memory.refused == 0; i++)
        driver_turn(driver);
    assert_int_equal(peer->datagrams, 0);
    driver->memory.refuse = 0;
    driver_until(driver, peer->datagrams == BATCH);
}

/* Memory is there for some of a batch only. */
TEST_EACH_BACKEND(datagram, come_as_memory_allows)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);

    peer_receive_start(peer, false);
    for (uint32_t i = 0; i < 200; i++) {
        driver->memory.refuse = i % 7;
        post(peer->remote, i, size_of(i));
        if (i % 20 == 19)
            driver_until(driver, peer->datagrams == i + 1);
    }
}

/* ---- addresses ---- */

static void expect_sender(struct peer *peer, const weir__io_datagram *datagram)
{
    const struct address *sender = peer->arg;

    if (datagram->header->msg_namelen != sender->length ||
        memcmp(datagram->header->msg_name, &sender->storage, sender->length) != 0)
        driver_fail(peer->driver, "from another address than was sent from");
}

static void receive_with_address(struct driver *driver, int family)
{
    struct address here;
    struct peer *peer = peer_open_datagrams(driver, socket_bind(family, SOCK_DGRAM, &here));

    peer->on_datagram = expect_sender;
    peer_receive_start(peer, false);
    for (unsigned i = 1; i <= 20; i++) {
        struct address there;
        int sender = socket_bind(family, SOCK_DGRAM, &there);

        peer->arg = &there;
        assert_int_equal(
            sendto(sender, "hello", 5, 0, (struct sockaddr *)&here.storage, here.length), 5);
        driver_until(driver, peer->datagrams == i);
        (void)close(sender);
    }
}

TEST_EACH_BACKEND(datagram, carry_the_sender)
{
    receive_with_address(driver, AF_INET);
    receive_with_address(driver, AF_UNIX);
}

static void expect_credentials(struct peer *peer, const weir__io_datagram *datagram)
{
    const struct cmsghdr *control = CMSG_FIRSTHDR(datagram->header);
    struct ucred credentials = {.pid = 0};

    if (control != NULL && control->cmsg_type == SCM_CREDENTIALS)
        memcpy(&credentials, CMSG_DATA(control), sizeof(credentials));
    if (credentials.pid != getpid())
        driver_fail(peer->driver, "without the sender's credentials");
}

TEST_EACH_BACKEND(datagram, bring_their_ancillary_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_DATAGRAM);
    const int on = 1;

    assert_int_equal(setsockopt(peer->descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
    peer->on_datagram = expect_credentials;
    peer_receive_start(peer, false);
    for (unsigned i = 0; i < 20; i++) {
        post(peer->remote, i, size_of(i));
        if (i % 5 == 4)
            driver_until(driver, peer->datagrams == i + 1);
    }
}

/* ---- errors ---- */

TEST_EACH_BACKEND(datagram, continue_after_an_error)
{
    struct peer *peer = open_receiver(driver, PAIR_UDP);
    struct address there;
    socklen_t length = sizeof(there.storage);

    assert_int_equal(getsockname(peer->remote, (struct sockaddr *)&there.storage, &length), 0);
    there.length = length;
    peer_remote_close(peer);
    peer_receive_start(peer, false);
    driver_turn(driver);
    assert_int_equal(send(peer->handle->descriptor, "?", 1, MSG_NOSIGNAL), 1);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->end_error, -ECONNREFUSED);

    peer->remote = socket_new(AF_INET, SOCK_DGRAM);
    assert_int_equal(bind(peer->remote, (struct sockaddr *)&there.storage, there.length), 0);
    length = sizeof(there.storage);
    assert_int_equal(
        getsockname(peer->handle->descriptor, (struct sockaddr *)&there.storage, &length), 0);
    assert_int_equal(connect(peer->remote, (struct sockaddr *)&there.storage, length), 0);
    peer_receive_start(peer, false);
    for (uint32_t i = 0; i < 20; i++)
        post(peer->remote, i, size_of(i));
    driver_until(driver, peer->datagrams == 20);
}

/* ---- sending ---- */

struct mail {
    struct letter letters[BATCH];
    struct iovec vectors[BATCH];
    struct mmsghdr messages[BATCH];
};

static void pack(struct mail *mail)
{
    memset(mail->messages, 0, sizeof(mail->messages));
    for (uint32_t i = 0; i < BATCH; i++) {
        mail->letters[i] = write_letter(i, size_of(i));
        mail->vectors[i] = (struct iovec){mail->letters[i].memory, mail->letters[i].length};
        mail->messages[i].msg_hdr = (struct msghdr){.msg_iov = &mail->vectors[i], .msg_iovlen = 1};
    }
}

/* Takes what is there out of the socket, and counts it. */
static uint32_t collect(int descriptor, uint32_t number)
{
    char memory[SIZE_MAX_USED];
    ssize_t length;

    while ((length = recv(descriptor, memory, sizeof(memory), 0)) >= 0) {
        struct letter expected = write_letter(number, size_of(number));

        assert_int_equal(length, expected.length);
        assert_memory_equal(memory, expected.memory, expected.length);
        number++;
    }
    return number;
}

static void send_batch(struct driver *driver, enum pair_kind kind)
{
    struct peer *peer = peer_open_pair(driver, kind);
    uint32_t collected = 0;
    uint32_t sent = 0;
    struct mail mail;

    pack(&mail);
    while (sent < BATCH) {
        ssize_t taken = peer_send_datagrams(peer, &mail.messages[sent], BATCH - sent);

        assert_true(taken >= 0);
        sent += (uint32_t)taken;
        driver_until(driver,
                     (collected = collect(peer->remote, collected), !peer->awaits_writable));
        assert_true(peer->last_sent == 0);
    }
    driver_until(driver, (collected = collect(peer->remote, collected)) == BATCH);
}

TEST_EACH_BACKEND(datagram, are_sent_in_batches)
{
    send_batch(driver, PAIR_UDP);
}

TEST_EACH_BACKEND(datagram, are_sent_when_a_full_socket_has_room)
{
    send_batch(driver, PAIR_UNIX_DATAGRAM);
}

TEST_EACH_BACKEND(datagram, nothing_is_lent_to_a_full_socket)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_DATAGRAM);
    struct mail mail;
    ssize_t taken;

    pack(&mail);
    (void)socket_fill(peer->handle->descriptor);
    taken = peer_send_datagrams(peer, mail.messages, BATCH);
    assert_int_equal(taken, 0);
    assert_int_equal(peer_send_datagrams(peer, mail.messages, 1), -EALREADY);
    memset(&mail, 0, sizeof(mail));
    driver_run_until_idle(driver);
    assert_int_equal(peer->sents, 0);
    assert_true(socket_drain(peer->remote) > 0);
    driver_until(driver, peer->sents == 1);
    assert_int_equal(peer->last_sent, 0);
    driver_run_until_idle(driver);
    assert_int_equal(socket_drain(peer->remote), 0);
}

TEST_EACH_BACKEND(datagram, that_cannot_be_sent_is_the_first_ones_error)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UDP);
    static char huge[70000];
    struct mail mail;
    ssize_t taken;

    pack(&mail);
    mail.vectors[3] = (struct iovec){huge, sizeof(huge)};
    assert_int_equal(peer_send_datagrams(peer, mail.messages, BATCH), 3);
    driver_until(driver, !peer->awaits_writable);
    assert_int_equal(peer->last_sent, 0);
    taken = peer_send_datagrams(peer, mail.messages + 3, BATCH - 3);
    assert_int_equal(taken, -EMSGSIZE);
    taken = peer_send_datagrams(peer, mail.messages + 4, BATCH - 4);
    assert_int_equal(taken, BATCH - 4);
}

TEST_EACH_BACKEND(datagram, go_to_their_addresses)
{
    struct address here;
    struct address there[2];
    struct peer *peer = peer_open_datagrams(driver, socket_bind(AF_INET, SOCK_DGRAM, &here));
    int receivers[2];
    struct mail mail;

    pack(&mail);
    for (int i = 0; i < 2; i++) {
        receivers[i] = socket_bind(AF_INET, SOCK_DGRAM, &there[i]);
        mail.messages[i].msg_hdr.msg_name = &there[i].storage;
        mail.messages[i].msg_hdr.msg_namelen = there[i].length;
    }
    assert_int_equal(peer_send_datagrams(peer, mail.messages, 2), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(collect(receivers[i], i), i + 1);
        (void)close(receivers[i]);
    }
}

/* ---- errors while reading is paused ---- */

/* A connected socket whose datagrams are refused, and whose errors nobody reads for now. */
TEST_EACH_BACKEND(datagram, an_error_while_paused_does_not_spin)
{
    struct address address;
    int nobody = socket_bind(AF_INET, SOCK_DGRAM, &address);
    struct peer *peer = peer_open_datagrams(driver, socket_new(AF_INET, SOCK_DGRAM));

    (void)close(nobody);
    assert_int_equal(connect(peer->descriptor, (struct sockaddr *)&address.storage, address.length),
                     0);
    peer_receive_start(peer, false);
    driver_run_until_idle(driver);
    peer_receive_stop(peer);
    assert_int_equal(send(peer->descriptor, "x", 1, 0), 1);
    driver_sleep(driver, weir_ms(100));
    assert_string_equal(peer->history, "");
    peer_receive_start(peer, false);
    driver_until(driver, peer->ends == 1);
    assert_int_equal(peer->end_error, -ECONNREFUSED);
}

/* ---- blocks that are kept ---- */

static void check_room(struct peer *peer, const weir__io_datagram *datagram)
{
    if (datagram->block.capacity < peer->handle->window || datagram->length > peer->handle->window)
        driver_fail(peer->driver, "a block of %zu for a window of %u", datagram->block.capacity,
                    peer->handle->window);
}

static struct peer *open_with_window(struct driver *driver, uint32_t window)
{
    struct peer *peer = peer_open_pair(driver, PAIR_UNIX_DATAGRAM);

    peer->handle->window = window;
    peer->on_datagram = check_room;
    peer_receive_start(peer, false);
    return peer;
}

/* Blocks that were taken in vain are kept for the next batch, which may be another handle's. */
TEST_EACH_BACKEND(datagram, handles_of_different_windows_share_a_loop)
{
    struct peer *peers[] = {open_with_window(driver, 256), open_with_window(driver, 4000),
                            open_with_window(driver, 1000)};
    static char bytes[4000];

    for (unsigned round = 1; round <= 12; round++) {
        for (size_t i = 0; i < 3; i++) {
            struct peer *peer = peers[(i * round) % 3];
            unsigned before = peer->datagrams;
            size_t size = peer->handle->window;

            assert_int_equal(send(peer->remote, bytes, size, 0), size);
            driver_until(driver, peer->datagrams == before + 1);
        }
    }
}
