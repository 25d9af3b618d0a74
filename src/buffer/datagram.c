/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams. transport/datagrams.c sends and receives them. A datagram is allocated from the pool,
 * as its bytes are, because many are created and freed in bulk, possibly on other threads.
 */
#include "buffer/datagram.h"

#include <errno.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/descriptors.h>

#include "buffer/leak.h"
#include "buffer/pool.h"

/* ---- addresses: only the used bytes are copied ---- */

static void set_address(weir_address *address, const void *bytes, socklen_t length)
{
    address->length = length;
    memcpy(&address->storage, bytes, length);
}

static void copy_address(weir_address *address, const weir_address *from)
{
    if (from != NULL)
        set_address(address, &from->storage, from->length);
    else
        address->length = 0;
}

/* ---- lifecycle ---- */

static bool has_bytes(const weir_msg *msg)
{
    return weir_msg_is(msg, &weir_buf_type) || weir_msg_is(msg, &weir_composite_type) ||
           weir_msg_is(msg, &weir_descriptors_type);
}

static int create(weir_msg *content, const weir_address *recipient, weir_datagram **ret_datagram)
{
    weir_buf *block = weir__pool_alloc(sizeof(weir_datagram));
    weir_datagram *datagram;

    if (block == NULL) {
        weir_msg_release(content);
        return -ENOMEM;
    }
    datagram = (weir_datagram *)(void *)block->data;
    datagram->block = block;
    weir_msg_init(&datagram->msg, &weir_datagram_type);
    datagram->next = NULL;
    datagram->content = content;
    datagram->segment_size = 0;
    datagram->is_local = false;
    datagram->has_source = false;
    datagram->sender.length = 0;
    copy_address(&datagram->recipient, recipient);
    weir__leak_msg_created(&datagram->msg);
    *ret_datagram = datagram;
    return 0;
}

int weir_datagram_create(weir_msg *content, const weir_address *recipient,
                         weir_datagram **ret_datagram)
{
    if (content != NULL && !has_bytes(content)) {
        weir_msg_release(content);
        return -EINVAL;
    }
    return create(content, recipient, ret_datagram);
}

int weir__datagram_received(weir_msg *content, const struct sockaddr *sender,
                            socklen_t sender_length, const weir_address *recipient,
                            weir_datagram **ret_datagram)
{
    int err = create(content, recipient, ret_datagram);

    if (err == 0 && sender_length <= sizeof((*ret_datagram)->sender.storage))
        set_address(&(*ret_datagram)->sender, sender, sender_length);
    return err;
}

static void destroy(weir_msg *msg)
{
    weir_datagram *datagram = weir_datagram_of(msg);

    weir__leak_msg_destroyed(msg);
    weir_msg_release(datagram->content);
    weir__pool_free(datagram->block);
}

/* ---- content ---- */

weir_msg *weir_datagram_content(const weir_datagram *datagram)
{
    return datagram->content;
}

weir_msg *weir_datagram_take_content(weir_datagram *datagram)
{
    weir_msg *content = datagram->content;

    datagram->content = NULL;
    return content;
}

/* ---- addresses ---- */

const weir_address *weir_datagram_sender(const weir_datagram *datagram)
{
    return &datagram->sender;
}

const weir_address *weir_datagram_recipient(const weir_datagram *datagram)
{
    return &datagram->recipient;
}

void weir_datagram_set_recipient(weir_datagram *datagram, const weir_address *recipient)
{
    copy_address(&datagram->recipient, recipient);
}

void weir_datagram_set_sender(weir_datagram *datagram, const weir_address *sender)
{
    copy_address(&datagram->sender, sender);
    datagram->has_source = datagram->sender.length > 0;
}

void weir_datagram_make_reply(weir_datagram *datagram)
{
    weir_address here;

    if (datagram->has_source)
        return; /* already a reply */
    if (datagram->is_local)
        copy_address(&here, &datagram->recipient);
    copy_address(&datagram->recipient, &datagram->sender);
    if (datagram->is_local)
        weir_datagram_set_sender(datagram, &here);
}

/* ---- segments ---- */

uint16_t weir_datagram_segment_size(const weir_datagram *datagram)
{
    return datagram->segment_size;
}

void weir_datagram_set_segment_size(weir_datagram *datagram, uint16_t size)
{
    datagram->segment_size = size;
}

/* ---- as a message ---- */

static size_t size(const weir_msg *msg)
{
    const weir_msg *content = weir_datagram_content((const weir_datagram *)(const void *)msg);

    return content != NULL ? weir_msg_size(content) : 0;
}

static int share(weir_msg *msg, weir_msg **ret_share)
{
    const weir_datagram *datagram = weir_datagram_of(msg);
    weir_datagram *other;
    weir_msg *content = NULL;
    int err = datagram->content != NULL ? weir_msg_share(datagram->content, &content) : 0;

    if (err < 0)
        return err;
    err = create(content, &datagram->recipient, &other);
    if (err < 0)
        return err;
    copy_address(&other->sender, &datagram->sender);
    other->segment_size = datagram->segment_size;
    other->is_local = datagram->is_local;
    other->has_source = datagram->has_source;
    *ret_share = weir_datagram_msg(other);
    return 0;
}

static void touch(weir_msg *msg, const char *where)
{
    weir__leak_msg_touch(msg, where);
}

const weir_msg_type weir_datagram_type = {
    .name = "datagram",
    .destroy = destroy,
    .size = size,
    .touch = touch,
    .share = share,
};
