/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/03-time.md shows besides the examples: a handler that is fed byte by byte.
 */
#include <errno.h>

#include "guide/guide_fixture.h"

/* doc:begin try */
static int try_it(const weir_handler *handler, const void *options)
{
    static const uint8_t bytes[4] = {0xe9, 0x00, 0x00, 0x00};
    weir_embedded *embedded = NULL;
    weir_buf *buf;
    int err = weir_embedded_create(NULL, &embedded);

    if (!err)
        err = weir_pipeline_add_last(weir_embedded_pipeline(embedded), handler, options);
    for (int i = 0; i < 4 && !err; i++) {
        err = weir_buf_create_from(&bytes[i], 1, &buf);
        if (!err)
            err = weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    }
    if (!err)
        err = weir_channel_is_open(weir_embedded_channel(embedded)) ? -EPROTO : 0;
    weir_embedded_release(embedded);
    return err;
}
/* doc:end */

/* Closes after `left` bytes. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    size_t *left = weir_ctx_state(ctx);

    *left -= weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
    if (*left == 0)
        weir_close(ctx, NULL);
}

static int init(void *state, const void *options)
{
    *(size_t *)state = *(const size_t *)options;
    return 0;
}

static const weir_handler closer = {
    .name = "closer", .state_size = sizeof(size_t), .init = init, .read = on_read};

TEST(time, a_handler_is_fed_byte_by_byte)
{
    size_t count = 4;

    assert_int_equal(try_it(&closer, &count), 0);
    count = 5;
    assert_int_equal(try_it(&closer, &count), -EPROTO);
}
