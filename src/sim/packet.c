/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"

/* ---- passed descriptors ---- */

static const struct cmsghdr *find_rights(const struct msghdr *message)
{
    struct msghdr *controls = (struct msghdr *)(uintptr_t)message; /* CMSG_NXTHDR only reads it */

    for (struct cmsghdr *at = CMSG_FIRSTHDR(controls); at != NULL; at = CMSG_NXTHDR(controls, at))
        if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS)
            return at;
    return NULL;
}

static int take_one(weir__sim_passed *passed, int number)
{
    weir__sim_file *file = weir__sim_file_of(number);
    int real = -1;

    if (number < WEIR__SIM_FD_FIRST)
        real = weir__sim->real.fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (file == NULL && real < 0)
        return -EBADF;
    if (file != NULL)
        weir__sim_file_retain(file);
    passed->items[passed->count].file = file;
    passed->items[passed->count++].real = real;
    return 0;
}

int weir__sim_passed_take(const struct msghdr *message, weir__sim_passed **ret_passed)
{
    const struct cmsghdr *rights = find_rights(message);
    size_t count = rights != NULL ? (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    weir__sim_passed *passed;
    int err = 0;

    *ret_passed = NULL;
    if (count == 0)
        return 0;
    if (count > WEIR__SIM_PASSED_MAX)
        return -EINVAL;
    passed = calloc(1, sizeof(*passed) + count * sizeof(passed->items[0]));
    if (passed == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count && err == 0; i++) {
        int number;

        memcpy(&number, CMSG_DATA(rights) + i * sizeof(int), sizeof(int));
        err = take_one(passed, number);
    }
    if (err == 0)
        *ret_passed = passed;
    else
        weir__sim_passed_free(passed);
    return err;
}

static void release_one(weir__sim_passed *passed, size_t i)
{
    if (passed->items[i].file != NULL)
        weir__sim_file_release(passed->items[i].file);
    else
        (void)weir__sim->real.close(passed->items[i].real);
}

void weir__sim_passed_free(weir__sim_passed *passed)
{
    if (passed == NULL)
        return;
    for (size_t i = 0; i < passed->count; i++)
        release_one(passed, i);
    free(passed);
}

/* The number in the receiving process, or an error. */
static int install(weir__sim_passed *passed, size_t i)
{
    int number = passed->items[i].real;

    if (passed->items[i].file == NULL) {
        passed->items[i].real = -1;
        return number;
    }
    return weir__sim_file_duplicate(passed->items[i].file);
}

void weir__sim_passed_deliver(weir__sim_passed *passed, struct msghdr *message)
{
    struct cmsghdr *control = message->msg_control;
    size_t size = control != NULL ? message->msg_controllen : 0, count = 0, room;

    message->msg_controllen = 0;
    if (passed == NULL)
        return;
    room = size > CMSG_LEN(0) ? (size - CMSG_LEN(0)) / sizeof(int) : 0;
    while (count < passed->count && count < room) {
        int number = install(passed, count);

        if (number < 0)
            break;
        memcpy(CMSG_DATA(control) + count++ * sizeof(int), &number, sizeof(int));
    }
    if (count < passed->count)
        message->msg_flags |= MSG_CTRUNC;
    if (count > 0) {
        control->cmsg_level = SOL_SOCKET;
        control->cmsg_type = SCM_RIGHTS;
        control->cmsg_len = CMSG_LEN(count * sizeof(int));
        message->msg_controllen =
            CMSG_SPACE(count * sizeof(int)) < size ? CMSG_SPACE(count * sizeof(int)) : size;
    }
    weir__sim_passed_free(passed);
}

/* ---- packets ---- */

static weir__sim_packet *allocate(size_t length)
{
    weir__sim_packet *packet = calloc(1, sizeof(*packet) + length);

    if (packet == NULL)
        return NULL;
    weir__list_init(&packet->link);
    packet->length = length;
    return packet;
}

weir__sim_packet *weir__sim_packet_create(const struct msghdr *message, size_t offset,
                                          size_t length)
{
    weir__sim_packet *packet = allocate(length);

    if (packet == NULL)
        return NULL;
    (void)weir__sim_copy_in(packet->bytes, length, message, offset);
    weir__sim_checksum_add(&packet->checksum, message, offset, length);
    return packet;
}

weir__sim_packet *weir__sim_packet_copy(const weir__sim_packet *packet)
{
    weir__sim_packet *copy = allocate(packet->length);

    if (copy == NULL)
        return NULL;
    copy->from = packet->from;
    copy->checksum = packet->checksum;
    memcpy(copy->bytes, packet->bytes, packet->length);
    return copy;
}

void weir__sim_packet_free(weir__sim_packet *packet)
{
    weir__list_remove(&packet->link);
    weir__sim_passed_free(packet->passed);
    free(packet);
}

void weir__sim_packets_free(weir__list *packets)
{
    weir__list *link;

    while ((link = weir__list_pop(packets)) != NULL)
        weir__sim_packet_free(WEIR_CONTAINER_OF(link, weir__sim_packet, link));
}

static void check_bytes(const weir__sim_packet *packet, const struct msghdr *message)
{
    weir__sim_checksum received = {0};

    weir__sim_checksum_add(&received, message, 0, packet->length);
    if (!weir__sim_checksum_equals(&received, &packet->checksum))
        weir_sim_fail(weir__sim,
                      "a packet of %zu bytes has arrived with other bytes than were sent",
                      packet->length);
}

ssize_t weir__sim_packet_receive(weir__sim_packet *packet, struct msghdr *message, int flags)
{
    size_t length = weir__sim_copy_out(message, 0, packet->bytes, packet->length);

    if (packet->from.length > 0)
        weir__sim_set_name(message, &packet->from);
    else
        message->msg_namelen = 0;
    if (length < packet->length)
        message->msg_flags |= MSG_TRUNC;
    else
        check_bytes(packet, message);
    if ((flags & MSG_PEEK) != 0) { /* a peek passes no descriptors here */
        if (packet->passed != NULL && message->msg_controllen == 0)
            message->msg_flags |= MSG_CTRUNC;
        message->msg_controllen = 0;
    } else {
        weir__sim_passed_deliver(packet->passed, message);
        packet->passed = NULL;
    }
    return (ssize_t)((flags & MSG_TRUNC) != 0 ? packet->length : length);
}
