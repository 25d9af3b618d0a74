/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler and its tests on an embedded channel: no socket, no thread, no waiting. handler-test
 */
#undef NDEBUG /* the asserts are the program */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

/* doc:begin handler */
/* Answers each 16-bit number with its double; closes a connection that is silent for a second. */
struct doubler {
    weir_timer silence;
    uint8_t half;
    bool has_half;
};

static void on_silence(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_fire_error(ctx, -ETIMEDOUT, "nothing for a second");
    weir_close(ctx, NULL);
}

static void answer(weir_ctx *ctx, uint16_t number)
{
    weir_buf *buf;
    int err = weir_buf_create(4, 4, &buf);

    if (err < 0) {
        weir_fire_error(ctx, err, NULL);
        return;
    }
    (void)weir_buf_write_u32(buf, 2u * number);
    weir_write(ctx, weir_buf_msg(buf), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct doubler *self = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    uint8_t byte;

    while (weir_buf_read_u8(buf, &byte) == 0) {
        if (self->has_half)
            answer(ctx, (uint16_t)(self->half << 8 | byte));
        self->half = byte;
        self->has_half = !self->has_half;
    }
    weir_msg_release(msg);
    (void)weir_ctx_timer_start(ctx, &self->silence, weir_seconds(1), on_silence);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler doubler = {
    .name = "doubler",
    .state_size = sizeof(struct doubler),
    .read = on_read,
    .read_complete = on_read_complete,
};
/* doc:end */

/* doc:begin first */
static weir_embedded *open_doubler(void)
{
    weir_embedded *embedded = NULL;

    assert(weir_embedded_create(NULL, &embedded) == 0);
    assert(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &doubler, NULL) == 0);
    return embedded;
}

static int feed(weir_embedded *embedded, const void *bytes, size_t length)
{
    weir_buf *buf = NULL;

    assert(weir_buf_create_from(bytes, length, &buf) == 0);
    return weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
}

static uint32_t next_answer(weir_embedded *embedded)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);
    uint32_t number = 0;

    assert(msg != NULL && weir_buf_read_u32(weir_buf_of(msg), &number) == 0);
    weir_msg_release(msg);
    return number;
}

static void doubles(void)
{
    weir_embedded *embedded = open_doubler();

    assert(feed(embedded, "\x00\x15\xff\xff", 4) == 0);
    assert(next_answer(embedded) == 42);
    assert(next_answer(embedded) == 131070);
    assert(weir_embedded_read_outbound(embedded) == NULL);
    weir_embedded_release(embedded);
}
/* doc:end */

/* doc:begin split */
static void does_not_care_how_bytes_come(void)
{
    static const uint8_t bytes[] = {0, 1, 0, 2, 0, 3};

    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        weir_embedded *embedded = open_doubler();

        assert(feed(embedded, bytes, cut) == 0);
        assert(feed(embedded, bytes + cut, sizeof(bytes) - cut) == 0);
        for (uint32_t n = 1; n <= 3; n++)
            assert(next_answer(embedded) == 2 * n);
        weir_embedded_release(embedded);
    }
}
/* doc:end */

/* doc:begin time */
static void lets_the_silent_go(void)
{
    weir_embedded *embedded = open_doubler();
    weir_channel *channel = weir_embedded_channel(embedded);

    assert(feed(embedded, "\x00\x01", 2) == 0);
    weir_embedded_advance(embedded, weir_ms(999));
    assert(weir_channel_is_open(channel));
    weir_embedded_advance(embedded, weir_ms(1));
    assert(weir_embedded_take_error(embedded) == -ETIMEDOUT);
    assert(!weir_channel_is_open(channel));
    weir_embedded_release(embedded);
}
/* doc:end */

/* doc:begin full */
static void waits_for_a_slow_peer(void)
{
    weir_embedded *embedded = NULL;

    assert(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = 4), &embedded) == 0);
    assert(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &doubler, NULL) == 0);
    assert(feed(embedded, "\x00\x01\x00\x02", 4) == 0);
    assert(next_answer(embedded) == 2);
    assert(weir_embedded_read_outbound(embedded) == NULL); /* the socket is full */
    weir_embedded_make_space(embedded, 4);
    assert(next_answer(embedded) == 4);
    weir_embedded_release(embedded);
}
/* doc:end */

/* doc:begin memory */
static size_t allocations, failing;

static void *alloc(void *user_data, size_t size)
{
    (void)user_data;
    return ++allocations == failing ? NULL : malloc(size);
}

static void *grow(void *user_data, void *memory, size_t size)
{
    (void)user_data;
    return ++allocations == failing ? NULL : realloc(memory, size);
}

static void give_back(void *user_data, void *memory)
{
    (void)user_data;
    free(memory);
}

static void lives_without_memory(void)
{
    const weir_memory fickle = {.alloc = alloc, .realloc = grow, .free = give_back};
    weir_embedded *embedded = NULL;
    weir_buf *buf = NULL;

    assert(weir_memory_set(&fickle) == 0);
    for (failing = 1; failing <= allocations + 1; failing++) { /* each allocation in turn */
        allocations = 0;
        if (weir_embedded_create(NULL, &embedded) < 0)
            continue;
        if (weir_pipeline_add_last(weir_embedded_pipeline(embedded), &doubler, NULL) == 0 &&
            weir_buf_create_from("\x00\x01", 2, &buf) == 0)
            (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        weir_embedded_release(embedded); /* no leak, no crash */
    }
    failing = 0;
}
/* doc:end */

/* doc:begin main */
int main(void)
{
    weir_leak_scope scope;

    lives_without_memory(); /* first: the memory hook is set before any other call */
    weir_leak_scope_begin(&scope);
    doubles();
    does_not_care_how_bytes_come();
    lets_the_silent_go();
    waits_for_a_slow_peer();
    assert(weir_leak_scope_end(&scope) == 0);
    puts("doubler: all is well");
    return EXIT_SUCCESS;
}
/* doc:end */
