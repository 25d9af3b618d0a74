/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two protocols of systemd: descriptors from 3 on, described by environment variables; and
 * datagrams of "NAME=value" lines to a Unix socket.
 */
#include <weir/restart.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/address.h>
#include <weir/error.h>

#include "base/log.h"
#include "bootstrap/notify_socket.h"
#include "os/descriptor.h"
#include "os/environment.h"
#include "os/process.h"
#include "os/system.h"
#include "os/thread.h"
#include "os/virtual_os.h"

#define COUNT_MAX 65536
#define RETRIES_MAX 5
#define RETRY_NS weir_ms(1) /* doubled each time */

static weir__mutex lock = WEIR__MUTEX_INIT; /* of predecessor() */

struct predecessor {
    char socket[WEIR_ADDRESS_TEXT_SIZE]; /* to notify it; "" = there is none */
    bool is_notified;                    /* that this process is ready */
};

/* The process that this one replaces. */
static struct predecessor *predecessor(void)
{
    static struct predecessor of_process;

    return weir__process_static(&of_process, sizeof(of_process));
}

/* ---- variables ---- */

/* Returns 1 if the variable is set. */
static int read_number(const char *name, int64_t max, int64_t *ret_number)
{
    const char *text = weir__environment_get(name);
    char *end;
    long long number;

    if (text == NULL)
        return 0;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 0 || number > max) {
        weir__warn("systemd", name, "invalid number \"%s\"", text);
        return -EINVAL;
    }
    *ret_number = number;
    return 1;
}

/* Returns 1 if the pid in the variable is ours; `by_default` if the variable is not set. */
static int is_for_us(const char *name, bool by_default)
{
    int64_t pid;
    int found = read_number(name, INT_MAX, &pid);

    if (found <= 0)
        return found < 0 ? found : by_default;
    return pid == weir__process_id();
}

/* ---- descriptors ---- */

static void copy_name(const char **names, char *ret_name)
{
    size_t length = *names != NULL ? strcspn(*names, ":") : 0;

    (void)snprintf(ret_name, WEIR_SYSTEMD_NAME_SIZE, "%.*s", (int)length,
                   *names != NULL ? *names : "");
    if (*names == NULL || length == 0)
        (void)snprintf(ret_name, WEIR_SYSTEMD_NAME_SIZE, "unknown");
    if (*names != NULL)
        *names = (*names)[length] == ':' ? *names + length + 1 : NULL;
}

static int take(weir_systemd_listener *listeners, int count)
{
    const char *names = weir__environment_get("LISTEN_FDNAMES");
    int first = weir__process_first_descriptor(), err = 0;

    for (int i = 0; i < count && err == 0; i++) {
        listeners[i].descriptor = first + i;
        copy_name(&names, listeners[i].name);
        err = weir__descriptor_set_cloexec(first + i);
    }
    if (err < 0)
        weir__warn("systemd", "LISTEN_FDS", "announced descriptors are not open: %s",
                   weir_error_text(err));
    return err;
}

/* READY=1 goes to the predecessor, everything else to the manager of both, if there is one. */
static int take_predecessor(void)
{
    const char *manager = weir__environment_get(WEIR__NOTIFY_MANAGER);
    const char *socket = weir__environment_get("NOTIFY_SOCKET");
    int err = 0;

    if (manager == NULL || socket == NULL)
        return 0;
    weir__mutex_lock(&lock);
    (void)snprintf(predecessor()->socket, WEIR_ADDRESS_TEXT_SIZE, "%s", socket);
    predecessor()->is_notified = false;
    weir__mutex_unlock(&lock);
    if (*manager != '\0')
        err = weir__environment_put("NOTIFY_SOCKET", manager);
    else
        weir__environment_unset("NOTIFY_SOCKET");
    weir__environment_unset(WEIR__NOTIFY_MANAGER);
    return err;
}

int weir_systemd_listeners(bool unset_environment, weir_systemd_listener *ret_listeners,
                           size_t capacity)
{
    int64_t count = 0;
    int found = is_for_us("LISTEN_PID", false), err;

    if (found > 0)
        found = read_number("LISTEN_FDS", COUNT_MAX, &count);
    if (found <= 0)
        return found;
    err = take(ret_listeners, (size_t)count < capacity ? (int)count : (int)capacity);
    if (err < 0)
        return err;
    if (unset_environment && (size_t)count <= capacity) {
        weir__environment_unset("LISTEN_PID");
        weir__environment_unset("LISTEN_FDS");
        weir__environment_unset("LISTEN_FDNAMES");
        err = take_predecessor();
    }
    return err < 0 ? err : (int)count;
}

/* ---- notification ---- */

/* A lost READY=1 undoes a restart, so a kernel that is short of memory is asked again. */
static bool may_retry(int err, int *retries)
{
    if (err != ENOBUFS || *retries >= RETRIES_MAX)
        return err == EINTR;
    weir__thread_sleep(RETRY_NS << (*retries)++);
    return true;
}

/* Blocks until there is room, as sd_notify does: the manager may be waiting for the message. */
static int send_text(int descriptor, const char *text)
{
    int retries = 0;
    ssize_t sent;

    do {
        sent = weir__sys.send(descriptor, text, strlen(text), MSG_NOSIGNAL);
    } while (sent < 0 && may_retry(errno, &retries));
    return sent < 0 ? -errno : 0;
}

static int send_to(const weir_address *manager, const char *text)
{
    int err = 0, descriptor = weir__sys.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (descriptor < 0)
        return -errno;
    if (weir__sys.connect(descriptor, weir_address_sockaddr(manager), manager->length) < 0)
        err = -errno;
    else
        err = send_text(descriptor, text);
    (void)weir__descriptor_close(descriptor);
    return err;
}

static int try_notify(const char *socket, const char *state)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address manager;
    int length, err = -EINVAL;

    length = snprintf(text, sizeof(text), "unix:%s", socket);
    if (length < (int)sizeof(text) && (*socket == '/' || *socket == '@'))
        err = weir_address_parse(text, &manager);
    return err == 0 ? send_to(&manager, state) : err;
}

static int notify(const char *socket, const char *state)
{
    int err;

    if (socket == NULL || *socket == '\0')
        return 0;
    err = try_notify(socket, state);
    if (err < 0)
        weir__warn("systemd", socket, "sd_notify failed: %s", weir_error_text(err));
    return err < 0 ? err : 1;
}

/* The first READY=1 goes to the predecessor, which notifies the manager. */
int weir_systemd_notify(const char *state)
{
    char before[WEIR_ADDRESS_TEXT_SIZE] = "";

    weir__mutex_lock(&lock);
    if (!predecessor()->is_notified && weir__notify_says_ready(state)) {
        memcpy(before, predecessor()->socket, sizeof(before));
        predecessor()->is_notified = true;
    }
    weir__mutex_unlock(&lock);
    return notify(before[0] != '\0' ? before : weir__environment_get("NOTIFY_SOCKET"), state);
}

/* It has usually ended by now, after the probation of this process. */
void weir__notify_predecessor(int pid)
{
    char socket[WEIR_ADDRESS_TEXT_SIZE], text[64];

    weir__mutex_lock(&lock);
    memcpy(socket, predecessor()->socket, sizeof(socket));
    predecessor()->socket[0] = '\0';
    weir__mutex_unlock(&lock);
    (void)snprintf(text, sizeof(text), WEIR__NOTIFY_REPLACED "%d", pid);
    if (socket[0] != '\0')
        (void)try_notify(socket, text);
}

int weir_systemd_watchdog(int64_t *ret_interval_ns)
{
    int64_t interval_us;
    int found = is_for_us("WATCHDOG_PID", true);

    if (found > 0)
        found = read_number("WATCHDOG_USEC", INT64_MAX / 1000, &interval_us);
    if (found > 0)
        *ret_interval_ns = interval_us * 1000;
    return found;
}
