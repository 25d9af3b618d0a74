/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/21-timeouts.md shows.
 */
#include <stdlib.h>
#include <string.h>

#include "guide/guide_fixture.h"

/* doc:begin idle */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_idle_event *idle = weir_idle_event_of(event);
    weir_buf *ping;

    if (idle != NULL && weir_idle_event_kind(idle) == WEIR_IDLE_READER)
        weir_close(ctx, NULL);
    else if (idle != NULL && weir_buf_create_from("ping\n", 5, &ping) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(ping), NULL);
    weir_msg_release(event);
}

static const weir_handler heartbeat = {.name = "heartbeat", .event = on_event};

static int add_heartbeat(weir_pipeline *pipeline)
{
    int err = weir_idle_add(
        pipeline, WEIR_IDLE_OPTIONS(.reader_ns = weir_seconds(60), .writer_ns = weir_seconds(20)));

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &heartbeat, NULL);
}
/* doc:end */

TEST(guide_timeouts, heartbeat_pings_and_closes)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(add_heartbeat(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_advance(embedded, weir_seconds(59));
    assert_text(weir_embedded_read_outbound(embedded), "ping\n");
    assert_text(weir_embedded_read_outbound(embedded), "ping\n");
    assert_null(weir_embedded_read_outbound(embedded));
    weir_embedded_advance(embedded, weir_seconds(1));
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* doc:begin chunks */
static int next_line(void *source, weir_msg **ret_chunk)
{
    int *left = source;
    weir_buf *line;
    int err;

    if (*left == 0)
        return WEIR_CHUNKS_END;
    err = weir_buf_create(64, 0, &line);
    if (err < 0)
        return err; /* the write fails with it */
    weir_buf_printf(line, "%d bottles of beer\n", (*left)--);
    *ret_chunk = weir_buf_msg(line);
    return WEIR_CHUNKS_READY;
}

static const weir_chunk_source song = {.next = next_line, .close = free};

static void sing(weir_channel *channel, int verses)
{
    int *left = malloc(sizeof(*left));
    weir_chunks *chunks;

    if (left == NULL)
        return;
    *left = verses;
    if (weir_chunks_create(&song, left, -1, &chunks) == 0)
        weir_channel_write_and_flush(channel, weir_chunks_msg(chunks), NULL);
}
/* doc:end */

/* doc:begin traffic */
static int limit(weir_pipeline *pipeline, weir_traffic *all_of_us)
{
    int err = weir_traffic_shaping_add(pipeline, all_of_us);

    return err < 0 ? err : weir_chunked_writing_add(pipeline);
}
/* doc:end */

TEST(guide_timeouts, shaped_chunks_are_sent_at_the_rate)
{
    weir_embedded *embedded = NULL;
    weir_traffic *traffic = NULL;
    weir_msg *line;
    unsigned lines = 0;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = 190), &traffic), 0);
    assert_int_equal(limit(weir_embedded_pipeline(embedded), traffic), 0);
    sing(weir_embedded_channel(embedded), 99);
    weir_embedded_advance(embedded, weir_seconds(5)); /* ten lines of 19 or 20 bytes a second */
    while ((line = weir_embedded_read_outbound(embedded)) != NULL) {
        lines += weir_msg_size(line) > 0;
        weir_msg_release(line);
    }
    assert_in_range(lines, 45, 55);
    weir_embedded_release(embedded);
    weir_traffic_release(traffic);
}
