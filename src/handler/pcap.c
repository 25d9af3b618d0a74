/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file: a header, then for each packet when it was and how long it is. Numbers are as the
 * machine has them, which the first one tells; times are in nanoseconds.
 */
#include "handler/pcap.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "executor/executor.h"
#include "os/background_writer.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/thread.h"

#define QUEUE_BYTES ((size_t)16 * 1024 * 1024)

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
    weir__background_writer *writer;
    weir__mutex lock; /* guards what follows; taken before the writer's */
    weir_pcap_stats stats;
    uint64_t room;   /* bytes that it may still grow by */
    int64_t last_ns; /* no packet is older than the one before it */
};

/* ---- writing ---- */

static uint8_t *reserve(weir_pcap *pcap, size_t length)
{
    uint8_t *place;

    if (length > pcap->room)
        return NULL;
    place = weir__background_writer_begin(pcap->writer, length);
    if (place != NULL)
        pcap->room -= length;
    else if (weir__background_writer_error(pcap->writer) == 0)
        pcap->stats.dropped++;
    return place;
}

static void write_head(weir_pcap *pcap, uint8_t *place, size_t length)
{
    struct packet_head head = {.stored = (uint32_t)length, .length = (uint32_t)length};
    int64_t now_ns = weir__realtime_now();

    if (now_ns > pcap->last_ns)
        pcap->last_ns = now_ns;
    head.seconds = (uint32_t)(pcap->last_ns / 1000000000);
    head.nanoseconds = (uint32_t)(pcap->last_ns % 1000000000);
    memcpy(place, &head, sizeof(head));
}

/* Without a lock: a log function may look at the file's figures. */
static void log_drop(uint64_t dropped)
{
    static weir__log_limit limit;
    weir__log_note note;

    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("pcap", "-", "the file does not keep up: %llu packets were left out%s",
                   (unsigned long long)dropped, note.text);
}

uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length)
{
    uint64_t dropped;
    uint8_t *place;

    weir__mutex_lock(&pcap->lock);
    dropped = pcap->stats.dropped;
    place = reserve(pcap, sizeof(struct packet_head) + length);
    if (place != NULL) {
        write_head(pcap, place, length);
        pcap->stats.packets++;
        return place + sizeof(struct packet_head);
    }
    pcap->stats.left_out++;
    dropped = pcap->stats.dropped > dropped ? pcap->stats.dropped : 0;
    weir__mutex_unlock(&pcap->lock);
    if (dropped > 0)
        log_drop(dropped);
    return NULL;
}

void weir__pcap_end(weir_pcap *pcap)
{
    weir__background_writer_end(pcap->writer);
    weir__mutex_unlock(&pcap->lock);
}

void weir__pcap_push(weir_pcap *pcap)
{
    weir__background_writer_push(pcap->writer);
}

int weir_pcap_flush(weir_pcap *pcap)
{
    return weir__background_writer_flush(pcap->writer);
}

void weir_pcap_read_stats(weir_pcap *pcap, weir_pcap_stats *ret_stats)
{
    weir__mutex_lock(&pcap->lock);
    *ret_stats = pcap->stats;
    weir__mutex_unlock(&pcap->lock);
    ret_stats->error = weir__background_writer_error(pcap->writer);
}

weir__ip weir__pcap_stand_in(unsigned side)
{
    return (weir__ip){.family = AF_INET, .bytes = {127, 0, 0, (uint8_t)(1 + side)}};
}

/* ---- life ---- */

static int check_options(const weir_pcap_options *options)
{
    if (options->path == NULL)
        return weir__options_reject("pcap", NULL, "there is no path");
    if (options->max_bytes > 0 && options->max_bytes < sizeof(struct file_head))
        return weir__options_reject(
            "pcap", options->path, "max_bytes is %llu, and the head of the file alone has %zu",
            (unsigned long long)options->max_bytes, sizeof(struct file_head));
    if (options->queue_bytes > 0 && options->queue_bytes < WEIR__BACKGROUND_QUEUE_MIN)
        return weir__options_reject("pcap", options->path, "queue_bytes is %zu, less than %zu",
                                    options->queue_bytes, WEIR__BACKGROUND_QUEUE_MIN);
    return 0;
}

static int start_writer(weir_pcap *pcap, const weir_pcap_options *options)
{
    size_t queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : QUEUE_BYTES;
    int file = -1, err = weir__file_create(options->path, &file);

    if (err < 0)
        return err;
    err = weir__background_writer_create(file, queue_bytes, "pcap", &pcap->writer);
    if (err < 0)
        (void)weir__descriptor_close(file);
    return err;
}

static int write_file_head(weir_pcap *pcap)
{
    const struct file_head head = {.magic = MAGIC_NANOSECONDS,
                                   .major = 2,
                                   .minor = 4,
                                   .longest = WEIR__PCAP_PACKET_MAX,
                                   .link = LINK_RAW_IP};
    uint8_t *place = reserve(pcap, sizeof(head));

    if (place == NULL)
        return -ENOMEM;
    memcpy(place, &head, sizeof(head));
    weir__background_writer_end(pcap->writer);
    return 0;
}

static void destroy(weir_pcap *pcap)
{
    if (pcap->stats.dropped > 0)
        log_drop(pcap->stats.dropped);
    if (pcap->writer != NULL)
        weir__background_writer_close(pcap->writer, !weir__executor_on_loop());
    weir__mutex_deinit(&pcap->lock);
    weir__free(pcap);
}

int weir_pcap_create(const weir_pcap_options *options, weir_pcap **ret_pcap)
{
    weir_pcap_options own;
    weir_pcap *pcap;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = check_options(&own);
    if (err < 0)
        return err;
    pcap = weir__zalloc(sizeof(*pcap));
    if (pcap == NULL)
        return -ENOMEM;
    weir__refs_init(&pcap->refs);
    weir__mutex_init(&pcap->lock);
    pcap->room = own.max_bytes > 0 ? own.max_bytes : UINT64_MAX;
    err = start_writer(pcap, &own);
    if (err == 0)
        err = write_file_head(pcap);
    if (err < 0) {
        destroy(pcap);
        return err;
    }
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
    destroy(pcap);
}
