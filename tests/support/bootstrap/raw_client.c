/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bootstrap/raw_client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/loop/sockets.h"
#include "support/test.h"

/* A ring that this thread has made and given back interrupts its calls once more, later on. */
#define UNINTERRUPTED(result, call) \
    do {                            \
        result = (call);            \
    } while ((result) < 0 && errno == EINTR)

static int make_socket(int family)
{
    const struct timeval patience = {.tv_sec = TEST_TIMEOUT_NS / weir_seconds(1)};
    int visitor = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(visitor >= 0);
    assert_int_equal(setsockopt(visitor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(setsockopt(visitor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
    return visitor;
}

int visitor_come_to(const weir_address *address)
{
    int visitor = make_socket(weir_address_family(address)), err;

    UNINTERRUPTED(err, connect(visitor, weir_address_sockaddr(address), address->length));
    assert_true(err == 0 || errno == EISCONN); /* after an interruption */
    return visitor;
}

int visitor_come_to_listener(weir_channel *listener)
{
    weir_address address;

    assert_int_equal(weir_channel_local_address(listener, &address), 0);
    return visitor_come_to(&address);
}

int visitor_come(const weir_server *server)
{
    return visitor_come_to_listener(weir_server_listener(server, 0));
}

void visitor_leave(int visitor)
{
    assert_int_equal(close(visitor), 0);
}

void visitor_say(int visitor, const char *text)
{
    ssize_t sent;

    UNINTERRUPTED(sent, send(visitor, text, strlen(text), MSG_NOSIGNAL));
    assert_int_equal(sent, strlen(text));
}

void visitor_hear(int visitor, const char *text)
{
    char heard[256];
    size_t length = strlen(text);
    ssize_t count;

    assert_true(length < sizeof(heard));
    for (size_t i = 0; i < length; i += (size_t)count) {
        UNINTERRUPTED(count, recv(visitor, heard + i, length - i, 0));
        assert_true(count > 0);
    }
    heard[length] = '\0';
    assert_string_equal(heard, text);
}

void visitor_hear_end(int visitor)
{
    char heard[256];
    ssize_t length;

    do {
        UNINTERRUPTED(length, recv(visitor, heard, sizeof(heard), 0));
    } while (length > 0);
    assert_true(length == 0 || errno == ECONNRESET);
}

void visitor_greet(int visitor, const char *text)
{
    visitor_say(visitor, text);
    visitor_hear(visitor, text);
}

/* Linux holds one more than the backlog; who comes then is not answered. */
void silence_make(struct silence *silence)
{
    assert_int_equal(weir_address_parse("127.0.0.1:0", &silence->address), 0);
    silence->listener = make_socket(AF_INET);
    assert_int_equal(
        bind(silence->listener, weir_address_sockaddr(&silence->address), silence->address.length),
        0);
    assert_int_equal(getsockname(silence->listener, (struct sockaddr *)&silence->address.storage,
                                 &silence->address.length),
                     0);
    assert_int_equal(listen(silence->listener, 0), 0);
    silence->visitors[0] = visitor_come_to(&silence->address);
    silence->visitors[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)connect(silence->visitors[1], weir_address_sockaddr(&silence->address),
                  silence->address.length);
}

void silence_release(struct silence *silence)
{
    visitor_leave(silence->visitors[1]);
    visitor_leave(silence->visitors[0]);
    visitor_leave(silence->listener);
}

weir_address nobody_there(void)
{
    weir_address address;
    int visitor = make_socket(AF_INET);

    assert_int_equal(weir_address_parse(own_loopback_text(), &address), 0);
    assert_int_equal(bind(visitor, weir_address_sockaddr(&address), address.length), 0);
    assert_int_equal(getsockname(visitor, (struct sockaddr *)&address.storage, &address.length), 0);
    visitor_leave(visitor);
    return address;
}
