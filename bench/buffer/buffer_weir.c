/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffer suite on weir, as it comes: one buffer in 128 is watched for leaks.
 */
#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/pool.h>

typedef weir_buf item;
typedef weir_buf bytes;
#include "buffer/competitor.h"

/* ---- taking and giving ---- */

static inline item *item_take(size_t size)
{
    weir_buf *buf;

    require(weir_buf_create(size, 0, &buf) == 0, "weir_buf_create");
    return buf;
}

static inline uint8_t *item_bytes(item *it)
{
    return weir_buf_space(it);
}

static inline void item_give(item *it, size_t size)
{
    (void)size;
    weir_buf_release(it);
}

static inline void item_give_far(item *it, size_t size)
{
    item_give(it, size);
}

static void items_trim(void)
{
    weir_pool_trim();
}

#include "buffer/cases.h"

/* ---- buffers ---- */

#include "buffer/bytes_cases.h"

static bytes *bytes_create(void)
{
    static const uint8_t zeros[BYTES_SIZE];
    weir_buf *buf;

    require(weir_buf_create_from(zeros, sizeof(zeros), &buf) == 0, "weir_buf_create_from");
    return buf;
}

static inline bytes *bytes_retain(bytes *self)
{
    return weir_buf_retain(self);
}

static inline void bytes_release(bytes *self)
{
    weir_buf_release(self);
}

static inline bytes *bytes_slice(bytes *self, size_t offset, size_t length)
{
    weir_buf *slice;

    require(weir_buf_slice(self, offset, length, &slice) == 0, "weir_buf_slice");
    return slice;
}

static inline size_t bytes_join(bytes *const *parts, struct iovec *vectors)
{
    weir_composite *composite;
    int errors = 0;
    size_t count;

    require(weir_composite_create(0, &composite) == 0, "weir_composite_create");
    for (int i = 0; i < JOINED; i++)
        errors |= weir_composite_add(composite, weir_buf_msg(weir_buf_retain(parts[i])));
    require(errors == 0, "weir_composite_add");
    count = weir_composite_iovecs(composite, vectors, JOINED);
    weir_composite_release(composite);
    return count;
}

static inline void bytes_read_numbers(bytes *self)
{
    uint32_t number;

    while (weir_buf_read_u32(self, &number) == 0)
        made(number);
    weir_buf_set_read_index(self, 0);
}

static inline void bytes_write_numbers(bytes *self)
{
    weir_buf_clear(self);
    for (uint32_t number = 0; number < NUMBERS; number++) {
        int err = weir_buf_write_u32(self, number);

        made((uintptr_t)err);
    }
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        {"now", now_case},   {"live", live_case},   {"far", far_case},
        {"ring", ring_case}, {"slice", slice_case}, {"retain", retain_case},
        {"join", join_case}, {"read", read_case},   {"write", write_case},
        {NULL, NULL},
    };

    return bench_main(argc, argv, cases);
}
