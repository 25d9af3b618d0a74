/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/resp/redis_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"

#define PATIENCE_MS 20000

static void run(const struct redis_server *server, int output)
{
    if (chdir(server->folder) == 0 && dup2(output, STDOUT_FILENO) >= 0)
        (void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", "socket",
                     "--save", "", "--dir", server->folder, "--enable-debug-command", "local",
                     (char *)NULL);
    _exit(127);
}

/* True once the server is ready, or has exited. */
static bool await_ready(int output)
{
    struct pollfd ready = {.fd = output, .events = POLLIN};
    char text[16384] = "";
    size_t length = 0;
    ssize_t more;

    while (strstr(text, "eady to accept connections") == NULL) {
        if (length == sizeof(text) - 1 || poll(&ready, 1, PATIENCE_MS) <= 0)
            return false;
        more = read(output, text + length, sizeof(text) - 1 - length);
        if (more <= 0)
            return false;
        length += (size_t)more;
        text[length] = '\0';
    }
    return true;
}

static void remove_folder(const struct redis_server *server)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/socket", server->folder);
    (void)unlink(path);
    (void)rmdir(server->folder);
}

static void end(struct redis_server *server, int signal, int *ret_status)
{
    assert_int_equal(kill(server->pid, signal), 0);
    assert_int_equal(waitpid(server->pid, ret_status, 0), server->pid);
    close(server->output);
    remove_folder(server);
}

void redis_server_start(struct redis_server *server)
{
    int ends[2], status = 0;

    (void)snprintf(server->folder, sizeof(server->folder), "/tmp/weir-redis-XXXXXX");
    assert_non_null(mkdtemp(server->folder));
    (void)snprintf(server->address, sizeof(server->address), "unix:%s/socket", server->folder);
    assert_int_equal(pipe(ends), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0)
        run(server, ends[1]);
    close(ends[1]);
    server->output = ends[0];
    if (await_ready(server->output))
        return;
    end(server, SIGKILL, &status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        WEIR_TEST_SKIP("there is no redis-server here");
    fail_msg("redis-server does not start");
}

void redis_server_stop(struct redis_server *server)
{
    int status = -1;

    end(server, SIGTERM, &status);
    assert_int_equal(status, 0);
}

void redis_server_kill(struct redis_server *server)
{
    int status;

    end(server, SIGKILL, &status);
}
