/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A datagram socket with an abstract name chosen by the kernel. Any process may send to it, so the
 * sender of each message is checked (SO_PASSCRED).
 */
#include "bootstrap/notify_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/address.h>

#include "base/log.h"
#include "os/descriptor.h"
#include "os/system.h"
#include "transport/socket.h"

#define MESSAGES_MAX 16 /* per call */
#define MESSAGE_SIZE 4096

static const weir_address any_name = {
    .length = sizeof(sa_family_t),
    .storage = {.ss_family = AF_UNIX},
};

static int prepare(int descriptor, weir_address *ret_name)
{
    int on = 1, err = weir__socket_set(descriptor, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));

    if (err < 0)
        return err;
    if (weir__sys.bind(descriptor, weir_address_sockaddr(&any_name), any_name.length) < 0)
        return -errno;
    return weir__socket_local_address(descriptor, ret_name);
}

int weir__notify_socket_open(int *ret_descriptor, char *ret_entry, size_t size)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address name;
    int descriptor, err = weir__socket_create(AF_UNIX, SOCK_DGRAM, &descriptor);

    if (err < 0)
        return err;
    err = prepare(descriptor, &name);
    if (err < 0) {
        (void)weir__descriptor_close(descriptor);
        return err;
    }
    (void)weir_address_format(&name, text, sizeof(text));
    (void)snprintf(ret_entry, size, "NOTIFY_SOCKET=%s", text + strlen("unix:"));
    *ret_descriptor = descriptor;
    return 0;
}

/* The pid of the sender; 0 if unknown. */
static int sender_of(struct msghdr *message)
{
    struct ucred sender = {0};

    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS)
            memcpy(&sender, CMSG_DATA(part), sizeof(sender));
    return sender.pid;
}

/* Returns the text after `begin` in the first line that starts with it, or that equals it if
 * `whole`; NULL if there is no such line. */
static const char *find_line(const char *text, const char *begin, bool whole)
{
    size_t length = strlen(begin);

    while (text != NULL) {
        if (strncmp(text, begin, length) == 0 &&
            (!whole || text[length] == '\n' || text[length] == '\0'))
            return text + length;
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return NULL;
}

bool weir__notify_says_ready(const char *text)
{
    return find_line(text, "READY=1", true) != NULL;
}

static void note(const char *text, weir__notified *notified)
{
    const char *pid = find_line(text, WEIR__NOTIFY_REPLACED, false);

    if (weir__notify_says_ready(text))
        notified->is_ready = true;
    if (pid != NULL)
        notified->replaced_by = (int)strtol(pid, NULL, 10);
}

/* Returns false if there is no message. */
static bool read_one(int descriptor, int pid, weir__notified *notified)
{
    char text[MESSAGE_SIZE];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec vector = {.iov_base = text, .iov_len = sizeof(text) - 1};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t length = weir__sys.recvmsg(descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (length < 0)
        return false;
    text[length] = '\0';
    if (sender_of(&message) == pid)
        note(text, notified);
    else
        weir__warn_limited("restart", "-",
                           "ignored a notification from process %d, which is not the new process",
                           sender_of(&message));
    return true;
}

weir__notified weir__notify_socket_read(int descriptor, int pid)
{
    weir__notified notified = {0};

    for (int i = 0; i < MESSAGES_MAX && read_one(descriptor, pid, &notified); i++)
        ;
    return notified;
}
