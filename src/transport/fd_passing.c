/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCM_RIGHTS, both ways. Received descriptors are owned at once: on every path they end up in a
 * message or are closed.
 */
#include "transport/fd_passing.h"

#include <errno.h>
#include <string.h>

#include "buffer/descriptors.h"
#include "channel/transport.h"
#include "os/descriptor.h"
#include "transport/receive.h"

/* ---- sending ---- */

void weir__fd_passing_put(weir__fd_passing *passing, const weir_descriptors *descriptors,
                          struct msghdr *header)
{
    int numbers[WEIR_DESCRIPTORS_MAX];
    size_t length = weir__descriptors_to_send(descriptors, numbers) * sizeof(int);
    struct cmsghdr *control;

    if (length == 0)
        return;
    header->msg_control = passing->control;
    header->msg_controllen = CMSG_SPACE(length);
    memset(passing->control, 0, CMSG_SPACE(length));
    control = CMSG_FIRSTHDR(header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(control), numbers, length);
}

ssize_t weir__fd_passing_send(weir__io_handle *handle, weir_descriptors *descriptors)
{
    const weir_buf *bytes = weir_descriptors_bytes(descriptors);
    struct iovec vector = {(void *)(uintptr_t)weir_buf_bytes(bytes), weir_buf_readable(bytes)};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &vector, .msg_iovlen = 1}};
    weir__fd_passing passing;
    ssize_t sent;

    weir__fd_passing_put(&passing, descriptors, &message.msg_hdr);
    sent = weir__io_send_datagrams(handle, &message, 1);
    if (sent <= 0)
        return sent;
    weir__descriptors_sent(descriptors);
    return message.msg_len;
}

/* ---- receiving ---- */

static bool is_scm_rights(const struct cmsghdr *control)
{
    return control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS;
}

/* Collects the descriptors received with a message; returns their number. */
static size_t collect(const struct msghdr *header, int ret_numbers[WEIR_DESCRIPTORS_MAX])
{
    struct msghdr *controls = (struct msghdr *)(uintptr_t)header; /* CMSG_NXTHDR only reads it */
    size_t count = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(controls); at != NULL; at = CMSG_NXTHDR(controls, at)) {
        size_t more = is_scm_rights(at) ? (at->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

        if (more > WEIR_DESCRIPTORS_MAX - count)
            break; /* the limit of the kernel */
        memcpy(ret_numbers + count, CMSG_DATA(at), more * sizeof(int));
        count += more;
    }
    return count;
}

static void close_all(const int *numbers, size_t count)
{
    while (count > 0)
        (void)weir__descriptor_close(numbers[--count]);
}

/* Fails if a message with these descriptors cannot be delivered. */
static int check(const weir__io_handle *handle, const weir__io_datagram *received, size_t count,
                 const char **ret_detail)
{
    if ((received->header->msg_flags & MSG_TRUNC) != 0) {
        *ret_detail = "message dropped: longer than receive_max";
        return -EMSGSIZE;
    }
    if (handle->receive_fds && (received->header->msg_flags & MSG_CTRUNC) != 0) {
        *ret_detail = "descriptors dropped: too many open files";
        return -EMFILE;
    }
    if (count > 0 && received->length == 0) {
        *ret_detail = "descriptors without a byte";
        return -EPROTO;
    }
    return 0;
}

int weir__fd_passing_receive(const weir__io_handle *handle, const weir__io_datagram *received,
                             weir_msg **ret_msg, const char **ret_detail)
{
    int numbers[WEIR_DESCRIPTORS_MAX];
    size_t count = handle->receive_fds ? collect(received->header, numbers) : 0;
    weir_buf *bytes = weir__received_buf(&received->block, received->length);
    int err = check(handle, received, count, ret_detail);
    weir_descriptors *passed;

    *ret_msg = NULL;
    if (err == 0 && count > 0) {
        *ret_detail = "descriptors dropped: out of memory";
        err = weir_descriptors_create(bytes, numbers, count, &passed);
        if (err == 0)
            *ret_msg = weir_descriptors_msg(passed);
        return err;
    }
    close_all(numbers, count);
    if (err == 0 || err == -EMFILE)
        *ret_msg = weir_buf_msg(bytes);
    else
        weir_buf_release(bytes);
    return err;
}

/* A stream that has lost bytes fails; one that has lost descriptors continues. */
bool weir__fd_passing_deliver(weir_channel *channel, const weir__io_handle *handle,
                              const weir__io_datagram *received)
{
    const char *detail = NULL;
    weir_msg *msg;
    int err = weir__fd_passing_receive(handle, received, &msg, &detail);

    if (err == -ENOMEM)
        weir__channel_failed(channel, err, detail);
    else if (err < 0)
        weir__channel_nonfatal_error(channel, err, detail);
    if (msg == NULL)
        return false;
    if (weir__io_may_notify(handle))
        (void)weir__channel_received(channel, msg);
    else
        weir_msg_release(msg);
    return true;
}
