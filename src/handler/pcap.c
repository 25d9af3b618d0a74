/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: a header, then for each packet when it was and how long it is. Numbers are as the
 * machine has them, which the first one tells; times are in nanoseconds.
 */
#include "handler/pcap.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "base/thread.h"

#define BUFFER_SIZE ((size_t)128 * 1024)

struct file_head {
    uint32_t magic;
    uint16_t major;
    uint16_t minor;
    int32_t zone;
    uint32_t accuracy;
    uint32_t longest;
    uint32_t link;
};

#define MAGIC_NANOSECONDS 0xa1b23c4d
#define LINK_RAW_IP 101

struct packet_head {
    uint32_t seconds;
    uint32_t nanoseconds;
    uint32_t stored;
    uint32_t length;
};

struct weir_pcap {
    weir__refs refs;
    int file;
    weir__mutex lock; /* what is below */
    weir_pcap_stats stats;
    uint64_t room;   /* bytes that it may still grow by */
    int64_t last_ns; /* no packet is older than the one before it */
    size_t used;
    uint8_t buffer[BUFFER_SIZE];
};

void weir_pcap_options_init(weir_pcap_options *options)
{
    memset(options, 0, sizeof(*options));
    options->size = sizeof(*options);
}

/* ---- writing ---- */

static void append(weir_pcap *pcap, const void *bytes, size_t length)
{
    memcpy(pcap->buffer + pcap->used, bytes, length);
    pcap->used += length;
    pcap->room -= length;
}

static int empty_buffer(weir_pcap *pcap)
{
    int err = pcap->stats.error;

    if (err == 0 && pcap->used > 0)
        err = weir__file_write(pcap->file, pcap->buffer, pcap->used);
    if (err < 0 && pcap->stats.error == 0)
        weir__warn("pcap", "-", "the file cannot be written, and gets no more packets: %s",
                   weir_error_text(err));
    pcap->stats.error = err;
    pcap->used = 0;
    return err;
}

static bool has_room(weir_pcap *pcap, size_t length)
{
    if (pcap->stats.error != 0 || length > pcap->room)
        return false;
    return length <= BUFFER_SIZE - pcap->used || empty_buffer(pcap) == 0;
}

uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length)
{
    struct packet_head head = {.stored = (uint32_t)length, .length = (uint32_t)length};
    int64_t now_ns = weir__realtime_now();
    uint8_t *packet;

    weir__mutex_lock(&pcap->lock);
    if (!has_room(pcap, sizeof(head) + length)) {
        pcap->stats.left_out++;
        weir__mutex_unlock(&pcap->lock);
        return NULL;
    }
    if (now_ns > pcap->last_ns)
        pcap->last_ns = now_ns;
    head.seconds = (uint32_t)(pcap->last_ns / 1000000000);
    head.nanoseconds = (uint32_t)(pcap->last_ns % 1000000000);
    append(pcap, &head, sizeof(head));
    packet = pcap->buffer + pcap->used;
    pcap->used += length;
    pcap->room -= length;
    pcap->stats.packets++;
    return packet;
}

void weir__pcap_end(weir_pcap *pcap)
{
    weir__mutex_unlock(&pcap->lock);
}

int weir_pcap_flush(weir_pcap *pcap)
{
    int err;

    weir__mutex_lock(&pcap->lock);
    err = empty_buffer(pcap);
    weir__mutex_unlock(&pcap->lock);
    return err;
}

void weir_pcap_read(weir_pcap *pcap, weir_pcap_stats *ret_stats)
{
    weir__mutex_lock(&pcap->lock);
    *ret_stats = pcap->stats;
    weir__mutex_unlock(&pcap->lock);
}

weir__ip weir__pcap_stand_in(unsigned side)
{
    return (weir__ip){.family = AF_INET, .bytes = {127, 0, 0, (uint8_t)(1 + side)}};
}

/* ---- life ---- */

int weir_pcap_create(const weir_pcap_options *options, weir_pcap **ret_pcap)
{
    const struct file_head head = {.magic = MAGIC_NANOSECONDS,
                                   .major = 2,
                                   .minor = 4,
                                   .longest = WEIR__PCAP_PACKET_MAX,
                                   .link = LINK_RAW_IP};
    weir_pcap_options own;
    weir_pcap *pcap;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.path == NULL)
        return weir__options_refuse("pcap", NULL, "there is no path");
    if (own.max_bytes > 0 && own.max_bytes < sizeof(head))
        return weir__options_refuse("pcap", own.path,
                                    "max_bytes is %llu, and the head of the file alone has %zu",
                                    (unsigned long long)own.max_bytes, sizeof(head));
    pcap = weir__zalloc(sizeof(*pcap));
    if (pcap == NULL)
        return -ENOMEM;
    err = weir__file_create(own.path, &pcap->file);
    if (err < 0) {
        weir__free(pcap);
        return err;
    }
    weir__refs_init(&pcap->refs);
    weir__mutex_init(&pcap->lock);
    pcap->room = own.max_bytes > 0 ? own.max_bytes : UINT64_MAX;
    append(pcap, &head, sizeof(head));
    *ret_pcap = pcap;
    return 0;
}

weir_pcap *weir_pcap_retain(weir_pcap *pcap)
{
    weir__refs_retain(&pcap->refs);
    return pcap;
}

void weir_pcap_release(weir_pcap *pcap)
{
    if (pcap == NULL || !weir__refs_release(&pcap->refs))
        return;
    (void)empty_buffer(pcap);
    (void)weir__descriptor_close(pcap->file);
    weir__mutex_deinit(&pcap->lock);
    weir__free(pcap);
}
