/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file format: a file header, then a header with time and length before each packet. Numbers
 * are in the machine's byte order, which the magic number shows. Times are in nanoseconds.
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
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/file_writer.h"
#include "os/thread.h"

#define QUEUE_BYTES ((size_t)16 * 1024 * 1024)

struct file_header {
    uint32_t magic;
    uint16_t major;
    uint16_t minor;
    int32_t utc_offset;
    uint32_t sigfigs;
    uint32_t snap_length;
    uint32_t link_type;
};

#define MAGIC_NANOSECONDS 0xa1b23c4d
#define LINK_RAW_IP 101

struct packet_header {
    uint32_t seconds;
    uint32_t nanoseconds;
    uint32_t stored;
    uint32_t length;
};

struct weir_pcap {
    weir__refs refs;
    weir_file_writer *writer;
    weir__mutex lock; /* guards the members below; taken before the writer's lock */
    weir_pcap_stats stats;
    uint64_t bytes_left; /* until max_bytes */
    int64_t last_ns;     /* timestamps never decrease */
};

/* ---- writing ---- */

static uint8_t *reserve(weir_pcap *pcap, size_t length)
{
    uint8_t *memory;

    if (length > pcap->bytes_left)
        return NULL;
    memory = weir_file_writer_begin(pcap->writer, length);
    if (memory != NULL)
        pcap->bytes_left -= length;
    else if (weir_file_writer_error(pcap->writer) == 0)
        pcap->stats.dropped++;
    return memory;
}

static void write_packet_header(weir_pcap *pcap, uint8_t *memory, size_t length)
{
    struct packet_header header = {.stored = (uint32_t)length, .length = (uint32_t)length};
    int64_t now_ns = weir_time_of_day();

    if (now_ns > pcap->last_ns)
        pcap->last_ns = now_ns;
    header.seconds = (uint32_t)(pcap->last_ns / 1000000000);
    header.nanoseconds = (uint32_t)(pcap->last_ns % 1000000000);
    memcpy(memory, &header, sizeof(header));
}

/* Called without the lock: a log function may read the stats. */
static void log_dropped(uint64_t dropped)
{
    static weir__log_limit limit;
    weir__log_note note;

    if (weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("pcap", "-", "the capture file is too slow: %llu packets dropped%s",
                   (unsigned long long)dropped, note.text);
}

uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length)
{
    uint64_t dropped;
    uint8_t *memory;

    weir__mutex_lock(&pcap->lock);
    dropped = pcap->stats.dropped;
    memory = reserve(pcap, sizeof(struct packet_header) + length);
    if (memory != NULL) {
        write_packet_header(pcap, memory, length);
        pcap->stats.packets++;
        return memory + sizeof(struct packet_header);
    }
    pcap->stats.skipped++;
    dropped = pcap->stats.dropped > dropped ? pcap->stats.dropped : 0;
    weir__mutex_unlock(&pcap->lock);
    if (dropped > 0)
        log_dropped(dropped);
    return NULL;
}

void weir__pcap_end(weir_pcap *pcap)
{
    weir_file_writer_end(pcap->writer);
    weir__mutex_unlock(&pcap->lock);
}

void weir__pcap_push(weir_pcap *pcap)
{
    weir_file_writer_push(pcap->writer);
}

int weir_pcap_flush(weir_pcap *pcap)
{
    return weir_file_writer_flush(pcap->writer);
}

void weir_pcap_read_stats(weir_pcap *pcap, weir_pcap_stats *ret_stats)
{
    weir__mutex_lock(&pcap->lock);
    *ret_stats = pcap->stats;
    weir__mutex_unlock(&pcap->lock);
    ret_stats->error = weir_file_writer_error(pcap->writer);
}

weir__ip weir__pcap_placeholder(unsigned side)
{
    return (weir__ip){.family = AF_INET, .bytes = {127, 0, 0, (uint8_t)(1 + side)}};
}

/* ---- lifecycle ---- */

static int check_options(const weir_pcap_options *options)
{
    if (options->path == NULL)
        return weir__options_reject("pcap", NULL, ".path is required");
    if (options->max_bytes > 0 && options->max_bytes < sizeof(struct file_header))
        return weir__options_reject(
            "pcap", options->path, "max_bytes is %llu, but the file header has %zu bytes",
            (unsigned long long)options->max_bytes, sizeof(struct file_header));
    if (options->queue_bytes > 0 && options->queue_bytes < WEIR_FILE_WRITER_QUEUE_MIN)
        return weir__options_reject("pcap", options->path, "queue_bytes is %zu: the minimum is %zu",
                                    options->queue_bytes, WEIR_FILE_WRITER_QUEUE_MIN);
    return 0;
}

static int start_writer(weir_pcap *pcap, const weir_pcap_options *options)
{
    size_t queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : QUEUE_BYTES;
    int file = -1, err = weir__file_create(options->path, &file);

    if (err < 0)
        return err;
    err = weir_file_writer_create(file, queue_bytes, "pcap", &pcap->writer);
    if (err < 0)
        (void)weir__descriptor_close(file);
    return err;
}

static int write_file_header(weir_pcap *pcap)
{
    const struct file_header header = {.magic = MAGIC_NANOSECONDS,
                                       .major = 2,
                                       .minor = 4,
                                       .snap_length = WEIR__PCAP_PACKET_MAX,
                                       .link_type = LINK_RAW_IP};
    uint8_t *memory = reserve(pcap, sizeof(header));

    if (memory == NULL)
        return -ENOMEM;
    memcpy(memory, &header, sizeof(header));
    weir_file_writer_end(pcap->writer);
    return 0;
}

static void destroy(weir_pcap *pcap)
{
    if (pcap->stats.dropped > 0)
        log_dropped(pcap->stats.dropped);
    if (pcap->writer != NULL)
        weir_file_writer_close(pcap->writer, !weir__executor_on_loop());
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
    pcap->bytes_left = own.max_bytes > 0 ? own.max_bytes : UINT64_MAX;
    err = start_writer(pcap, &own);
    if (err == 0)
        err = write_file_header(pcap);
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
