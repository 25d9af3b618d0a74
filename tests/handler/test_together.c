/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers that delay writes, in any order and number, while the test writes, cancels, removes
 * them and moves the channel, and while listeners write at once.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/chunks.h>
#include <weir/flow_control.h>
#include <weir/timeouts.h>
#include <weir/traffic.h>

#include "support/channel/test_channel.h"
#include "support/property.h"

enum { WRITES_MAX = 100 }; /* each write has its own byte, to verify the order */

enum kind {
    WRITE,
    WRITE_CHUNKS,
    FLUSH,
    PASS_TIME,
    MAKE_ROOM,
    ADD,
    REMOVE,
    MOVE,
    CANCEL,
    REACT,
    SETTLE,
    KINDS,
};

static const char *const names[] = {"chunked-writing", "traffic-shaping", "write-timeout",
                                    "flush-consolidation"};
#define NAMES (sizeof(names) / sizeof(names[0]))

struct together {
    struct test_channel tc;
    weir_traffic *traffic;
    weir_promise *promises[WRITES_MAX];
    unsigned completions[WRITES_MAX];
    size_t writes;
    unsigned reactions; /* the number of listeners that write */
    unsigned sources;   /* open chunk sources */
    bool shapes;        /* now or earlier */
    uint8_t last_sent;
};

/* ---- writing ---- */

static weir_msg *numbered_msg(uint8_t number, size_t size)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(size, size, &buf), 0);
    memset(weir_buf_space(buf), number, size);
    (void)weir_buf_advance(buf, size);
    return weir_buf_msg(buf);
}

static void react(struct together *all);

static void on_told(weir_promise *promise, void *all_)
{
    struct together *all = all_;

    for (size_t i = 0; i < all->writes; i++)
        all->completions[i] += all->promises[i] == promise;
    react(all);
}

/* The message is created for its number. */
static void write_next(struct together *all, weir_msg *(*make)(struct together *all, uint32_t size),
                       uint32_t size)
{
    weir_promise *promise = NULL;
    weir_msg *msg;

    if (all->writes == WRITES_MAX)
        return;
    msg = make(all, size);
    assert_int_equal(weir_promise_create(all->tc.stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, on_told, all), 0);
    all->promises[all->writes++] = promise;
    weir_channel_write(all->tc.channel, msg, promise);
}

static weir_msg *make_text(struct together *all, uint32_t size)
{
    return numbered_msg((uint8_t)all->writes, size);
}

static void react(struct together *all)
{
    if (all->reactions == 0)
        return;
    all->reactions--;
    write_next(all, make_text, 50);
    weir_channel_flush(all->tc.channel);
}

static void on_writability(weir_ctx *ctx)
{
    react(*(struct together **)weir_ctx_state(ctx));
}

static int init_hearer(void *state, const void *all)
{
    memcpy(state, all, sizeof(struct together *));
    return 0;
}

static const weir_handler observer = {
    .name = "observer",
    .state_size = sizeof(struct together *),
    .init = init_hearer,
    .writability = on_writability,
};

/* ---- chunks ---- */

struct source {
    struct together *all;
    unsigned pieces;
    uint8_t number;
};

static int next_piece(void *source_, weir_msg **ret_chunk)
{
    struct source *source = source_;

    if (source->pieces == 0)
        return WEIR_CHUNKS_END;
    source->pieces--;
    *ret_chunk = numbered_msg(source->number, 60 * source->pieces);
    return WEIR_CHUNKS_READY;
}

static void close_source(void *source)
{
    ((struct source *)source)->all->sources--;
    free(source);
}

static weir_msg *make_chunks(struct together *all, uint32_t pieces)
{
    static const weir_chunk_source table = {.next = next_piece, .close = close_source};
    struct source *source = malloc(sizeof(*source));
    weir_chunks *chunks = NULL;

    *source = (struct source){all, pieces, (uint8_t)all->writes};
    all->sources++;
    assert_int_equal(weir_chunks_create(&table, source, -1, &chunks), 0);
    return weir_chunks_msg(chunks);
}

/* ---- handlers ---- */

static bool has(struct together *all, const char *name)
{
    return weir_pipeline_find(all->tc.pipeline, name) != NULL;
}

static void add(struct together *all, size_t which)
{
    weir_pipeline *pipeline = all->tc.pipeline;
    int err;

    all->shapes = all->shapes || which == 1;
    if (which == 0)
        err = weir_chunked_writing_add(pipeline);
    else if (which == 1)
        err = weir_traffic_shaping_add(pipeline, all->traffic);
    else if (which == 2)
        err = weir_write_timeout_add(pipeline,
                                     WEIR_WRITE_TIMEOUT_OPTIONS(.timeout_ns = weir_seconds(1000)));
    else
        err = weir_flush_consolidation_add(pipeline,
                                           WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = 3));
    if (err < 0)
        abort();
}

/* The wire accepts anything, so chunks must not reach it while shaping may still delay them. */
static void take_out(struct together *all, size_t which)
{
    if (has(all, names[which]) && !(which == 0 && all->shapes))
        (void)weir_pipeline_remove(all->tc.pipeline, names[which], NULL);
}

static void move(struct together *all)
{
    weir_channel_deregister(all->tc.channel, NULL);
    tc_run(&all->tc);
    weir_channel_register(all->tc.channel, all->tc.stepper.executor, NULL);
    tc_run(&all->tc);
}

/* ---- what must hold ---- */

static bool are_in_order(struct together *all)
{
    struct wire *wire = all->tc.wire;

    for (size_t i = 0; i < wire->sent_length; i++) {
        PROPERTY((uint8_t)wire->sent[i] >= all->last_sent);
        all->last_sent = (uint8_t)wire->sent[i];
    }
    wire->sent_length = 0;
    return true;
}

/* With a flush, time and a reading peer, every write completes. */
static bool settles(struct together *all)
{
    weir_traffic_stats stats;

    all->reactions = 0;
    tc_make_room(&all->tc, -1);
    weir_channel_flush(all->tc.channel);
    for (int i = 0; i < 1000 && weir_channel_pending_bytes(all->tc.channel) > 0; i++)
        stepper_advance(&all->tc.stepper, weir_ms(25));
    tc_run(&all->tc);
    for (size_t i = 0; i < all->writes; i++)
        PROPERTY(all->completions[i] == 1);
    weir_traffic_read_stats(all->traffic, &stats);
    PROPERTY(stats.bytes_waiting == 0);
    PROPERTY(all->sources == 0);
    PROPERTY(weir_channel_pending_bytes(all->tc.channel) == 0);
    PROPERTY(weir_channel_is_writable(all->tc.channel));
    return true;
}

/* ---- the property ---- */

static void begin(void *state)
{
    struct together *all = state;

    tc_open_with(&all->tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    assert_int_equal(
        weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = 20000, .burst_ns = weir_ms(5)),
                            &all->traffic),
        0);
    assert_int_equal(weir_pipeline_add_last(all->tc.pipeline, &observer, &all), 0);
    tc_start(&all->tc);
}

static bool step(void *state, const struct property_step *step)
{
    struct together *all = state;
    const uint32_t *numbers = step->numbers;

    if (step->kind == WRITE)
        write_next(all, make_text, numbers[0] % 400);
    else if (step->kind == WRITE_CHUNKS && has(all, names[0]))
        write_next(all, make_chunks, numbers[0] % 8);
    else if (step->kind == FLUSH)
        weir_channel_flush(all->tc.channel);
    else if (step->kind == PASS_TIME)
        stepper_advance(&all->tc.stepper, weir_ms(numbers[0] % 30));
    else if (step->kind == MAKE_ROOM)
        tc_make_room(&all->tc, numbers[0] % 600);
    else if (step->kind == ADD)
        add(all, numbers[0] % NAMES);
    else if (step->kind == REMOVE && numbers[1] % 4 == 0)
        take_out(all, numbers[0] % NAMES);
    else if (step->kind == MOVE && numbers[1] % 4 == 0)
        move(all);
    else if (step->kind == CANCEL && all->writes > 0)
        (void)weir_promise_cancel(all->promises[numbers[0] % all->writes]);
    else if (step->kind == REACT)
        all->reactions = numbers[0] % 3;
    PROPERTY(are_in_order(all));
    return step->kind != SETTLE || (settles(all) && are_in_order(all));
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    static const char *const kinds[KINDS] = {"write",  "chunks", "flush",  "time",  "room",  "add",
                                             "remove", "move",   "cancel", "react", "settle"};

    (void)snprintf(text, size, "%s %u %u", kinds[step->kind], step->numbers[0], step->numbers[1]);
}

static void end(void *state)
{
    struct together *all = state;

    all->reactions = 0;
    tc_close(&all->tc);
    for (size_t i = 0; i < all->writes; i++)
        weir_promise_release(all->promises[i]);
    weir_traffic_release(all->traffic);
}

TEST(together, handlers_lose_nothing_and_keep_the_order)
{
    static const struct property property = {
        .name = "together",
        .state_size = sizeof(struct together),
        .kinds = KINDS,
        .begin = begin,
        .step = step,
        .describe = describe,
        .end = end,
    };

    property_check(&property, 1000, 80);
}
