/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/http_call.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "support/bootstrap/raw_client.h"
#include "support/test.h"

static ssize_t receive(int peer, char *to, size_t size)
{
    ssize_t count;

    do {
        count = recv(peer, to, size, 0);
    } while (count < 0 && errno == EINTR);
    return count;
}

bool http_call_receive(int peer, char ret_answer[HTTP_CALL_SIZE])
{
    size_t length = 0;
    ssize_t count;

    while ((count = receive(peer, ret_answer + length, HTTP_CALL_SIZE - 1 - length)) > 0)
        length += (size_t)count;
    ret_answer[length] = '\0';
    assert_true(count == 0 || errno == ECONNRESET);
    return count == 0;
}

void http_call_receive_one(int peer, size_t length, char ret_answer[HTTP_CALL_SIZE])
{
    size_t have = 0;
    const char *end = NULL;

    ret_answer[0] = '\0';
    while (end == NULL || have < (size_t)(end + 4 - ret_answer) + length) {
        ssize_t count = receive(peer, ret_answer + have, HTTP_CALL_SIZE - 1 - have);

        assert_true(count > 0);
        have += (size_t)count;
        ret_answer[have] = '\0';
        end = strstr(ret_answer, "\r\n\r\n");
    }
}

void http_call(weir_http_server *server, const char *text, char ret_answer[HTTP_CALL_SIZE])
{
    int peer = raw_client_connect(weir_http_server_server(server));

    raw_client_send(peer, text);
    (void)http_call_receive(peer, ret_answer);
    raw_client_close(peer);
}
