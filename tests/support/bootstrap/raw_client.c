/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bootstrap/raw_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/loop/sockets.h"
#include "support/test.h"

/* A ring that this thread has created and closed interrupts its calls once more, later on. */
#define UNINTERRUPTED(result, call) \
    do {                            \
        result = (call);            \
    } while ((result) < 0 && errno == EINTR)

static int make_socket(int family)
{
    const struct timeval patience = {.tv_sec = TEST_TIMEOUT_NS / weir_seconds(1)};
    int peer = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(peer >= 0);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    return peer;
}

int raw_client_connect_address(const weir_address *address)
{
    int peer = make_socket(weir_address_family(address)), err;

    UNINTERRUPTED(err, connect(peer, weir_address_sockaddr(address), address->length));
    assert_true(err == 0 || errno == EISCONN); /* after an interruption */
    return peer;
}

int raw_client_connect_listener(weir_channel *listener)
{
    weir_address address;

    assert_int_equal(weir_channel_local_address(listener, &address), 0);
    return raw_client_connect_address(&address);
}

int raw_client_connect(const weir_server *server)
{
    return raw_client_connect_listener(weir_server_listener(server, 0));
}

void raw_client_close(int peer)
{
    assert_int_equal(close(peer), 0);
}

void raw_client_send_bytes(int peer, const void *bytes, size_t length)
{
    ssize_t count;

    for (size_t i = 0; i < length; i += (size_t)count) { /* an interrupted call sends a part */
        UNINTERRUPTED(count, send(peer, (const char *)bytes + i, length - i, MSG_NOSIGNAL));
        assert_true(count > 0);
    }
}

void raw_client_send(int peer, const char *text)
{
    raw_client_send_bytes(peer, text, strlen(text));
}

void raw_client_receive_bytes(int peer, void *ret_bytes, size_t length)
{
    ssize_t count;

    for (size_t i = 0; i < length; i += (size_t)count) {
        UNINTERRUPTED(count, recv(peer, (char *)ret_bytes + i, length - i, 0));
        assert_true(count > 0);
    }
}

void raw_client_receive(int peer, const char *text)
{
    char heard[256];
    size_t length = strlen(text);

    assert_true(length < sizeof(heard));
    raw_client_receive_bytes(peer, heard, length);
    heard[length] = '\0';
    assert_string_equal(heard, text);
}

void raw_client_receive_end(int peer)
{
    char heard[256];
    ssize_t length;

    do {
        UNINTERRUPTED(length, recv(peer, heard, sizeof(heard), 0));
    } while (length > 0);
    assert_true(length == 0 || errno == ECONNRESET);
}

size_t raw_client_receive_all(int peer, char *ret_text, size_t size)
{
    size_t total = 0, kept = 0;
    ssize_t length;

    for (;;) {
        if (kept == size - 1) { /* drops the older half */
            memmove(ret_text, ret_text + size / 2, kept - size / 2);
            kept -= size / 2;
        }
        UNINTERRUPTED(length, recv(peer, ret_text + kept, size - 1 - kept, 0));
        assert_true(length >= 0);
        if (length == 0)
            break;
        kept += (size_t)length;
        total += (size_t)length;
    }
    ret_text[kept] = '\0';
    return total;
}

void raw_client_echo(int peer, const char *text)
{
    raw_client_send(peer, text);
    raw_client_receive(peer, text);
}

/* Linux holds one more than the backlog; who comes then is not answered. */
void silent_address_init(struct silent_address *silent)
{
    assert_int_equal(weir_address_parse("127.0.0.1:0", &silent->address), 0);
    silent->listener = make_socket(AF_INET);
    assert_int_equal(
        bind(silent->listener, weir_address_sockaddr(&silent->address), silent->address.length), 0);
    assert_int_equal(getsockname(silent->listener, (struct sockaddr *)&silent->address.storage,
                                 &silent->address.length),
                     0);
    assert_int_equal(listen(silent->listener, 0), 0);
    silent->peers[0] = raw_client_connect_address(&silent->address);
    silent->peers[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)connect(silent->peers[1], weir_address_sockaddr(&silent->address),
                  silent->address.length);
}

void silent_address_deinit(struct silent_address *silent)
{
    raw_client_close(silent->peers[1]);
    raw_client_close(silent->peers[0]);
    raw_client_close(silent->listener);
}

weir_address unused_address(void)
{
    weir_address address;
    int peer = make_socket(AF_INET);

    assert_int_equal(weir_address_parse(own_loopback_text(), &address), 0);
    assert_int_equal(bind(peer, weir_address_sockaddr(&address), address.length), 0);
    assert_int_equal(getsockname(peer, (struct sockaddr *)&address.storage, &address.length), 0);
    raw_client_close(peer);
    return address;
}
