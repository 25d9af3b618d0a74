/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers compared with their model (buf_model.h): long random sequences of all operations on a few
 * buffers, some of which are views of others. Contents, indices, counts and errors must agree after
 * every step. test_buf.c and others have single cases.
 */
#include <stdio.h>

#include <weir/buf.h>

#include "buffer/buf_model.h"
#include "buffer/number_table.h"
#include "support/property.h"
#include "support/test.h"

#define SIDES 4
#define SIZE_LIMIT 700 /* requested by a single step */

/* A buffer and its model; empty if buf is NULL. */
struct side {
    struct side *all; /* of the same test */
    weir_buf *buf;
    const uint8_t *base; /* its data pointer when last checked */
    struct model model;
};

/* ---- arguments ---- */

/* Mostly within `end`, sometimes a little or far beyond. */
static size_t around(uint32_t number, size_t end)
{
    return number % 32 == 31 ? SIZE_MAX - number / 32 % 12 : number % (end + 3);
}

static size_t small(uint32_t number)
{
    return number % SIZE_LIMIT;
}

/* Many bits from few, so that shrinking has little to do. */
static uint64_t wide(uint32_t number)
{
    return number % 4 == 0 ? number / 4 : number * UINT64_C(0x9e3779b97f4a7c15);
}

/* Bytes that differ and repeat: there is something to find, and varints of all kinds. */
static uint8_t pattern(uint32_t number, size_t i)
{
    static const uint8_t ends[] = {0, 1, 2, 'a', 'b', 0x7f, 0x80, 0xff};
    uint64_t mixed = (number + i) * UINT64_C(0x9e3779b97f4a7c15) >> 32;

    return mixed % 3 == 0 ? ends[mixed / 3 % sizeof(ends)] : (uint8_t)(mixed / 3);
}

static void fill_pattern(uint32_t number, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = pattern(number, i);
}

/* ---- both together ---- */

static const uint8_t *base_of(const weir_buf *buf)
{
    return weir_buf_bytes(buf) - weir_buf_read_index(buf);
}

/* The model was updated; checks whether the buffer has moved to other memory. */
static bool follow(struct side *side)
{
    const uint8_t *base = base_of(side->buf);
    size_t capacity = weir_buf_capacity(side->buf);

    if (base != side->base) {
        PROPERTY(!side->model.is_view && !side->model.is_read_only);
        PROPERTY(capacity >= side->model.write && capacity <= side->model.max);
        model_move(&side->model, capacity);
        side->base = base;
    }
    return true;
}

static bool same_bytes(const struct side *side)
{
    for (size_t i = 0; i < side->model.capacity; i++) {
        bool is_known = model_knows(&side->model, i);

        PROPERTY(is_known || i >= side->model.write);
        PROPERTY(!is_known || model_get(&side->model, i) == side->base[i]);
    }
    return true;
}

static bool same(const struct side *side)
{
    const struct model *model = &side->model;

    PROPERTY(base_of(side->buf) == side->base);
    PROPERTY(weir_buf_read_index(side->buf) == model->read);
    PROPERTY(weir_buf_write_index(side->buf) == model->write);
    PROPERTY(weir_buf_capacity(side->buf) == model->capacity);
    PROPERTY(weir_buf_max(side->buf) == model->max);
    PROPERTY(weir_buf_readable(side->buf) == model->write - model->read);
    PROPERTY(weir_buf_writable(side->buf) == model->capacity - model->write);
    PROPERTY(weir_buf_is_read_only(side->buf) == model->is_read_only);
    PROPERTY(weir_msg_size(weir_buf_msg(side->buf)) == model_readable(model));
    PROPERTY(weir_msg_refs(weir_buf_msg(side->buf)) == model_refs(model));
    return same_bytes(side);
}

/* ---- life ---- */

static bool release(struct side *side, const uint32_t *numbers)
{
    (void)numbers;
    weir_buf_release(side->buf);
    if (model_release(&side->model))
        side->buf = NULL;
    return true;
}

static void empty(struct side *side)
{
    while (side->buf != NULL)
        (void)release(side, NULL);
}

/* A new root; the model gets its capacity. */
static bool settle(struct side *side, size_t capacity, size_t max)
{
    PROPERTY(weir_buf_capacity(side->buf) >= capacity);
    side->base = base_of(side->buf);
    model_create(&side->model, weir_buf_capacity(side->buf), max);
    return true;
}

static bool create(struct side *side, const uint32_t *numbers)
{
    size_t max = numbers[1] % 4 == 0 ? 0 : small(numbers[1]);
    size_t capacity = small(numbers[0]);
    int err = max == 0 || capacity <= max ? 0 : -EINVAL;
    weir_buf *buf = NULL;

    PROPERTY(weir_buf_create(capacity, max, &buf) == err);
    if (err < 0)
        return true;
    empty(side);
    side->buf = buf;
    return settle(side, capacity, max == 0 ? WEIR_BUF_MAX : max);
}

/* The model gets what was copied or wrapped. */
static void settle_bytes(struct side *side, size_t length)
{
    for (size_t i = 0; i < length; i++)
        model_append(&side->model, side->base[i]);
}

static bool create_from(struct side *side, const uint32_t *numbers)
{
    uint8_t bytes[SIZE_LIMIT] = {0};
    size_t length = small(numbers[0]);

    empty(side);
    fill_pattern(numbers[1], bytes, length);
    PROPERTY(weir_buf_create_from(bytes, length, &side->buf) == 0);
    PROPERTY(settle(side, length, WEIR_BUF_MAX));
    PROPERTY(length == 0 || memcmp(side->base, bytes, length) == 0);
    settle_bytes(side, length);
    return true;
}

static void free_data(void *data, void *user_data)
{
    (void)user_data;
    free(data);
}

static bool wrap(struct side *side, const uint32_t *numbers)
{
    size_t length = small(numbers[0]);
    uint8_t *bytes = model_allocate(length);

    empty(side);
    fill_pattern(numbers[1], bytes, length);
    PROPERTY(weir_buf_wrap(bytes, length, free_data, NULL, &side->buf) == 0);
    PROPERTY(weir_buf_capacity(side->buf) == length);
    PROPERTY(settle(side, length, length));
    settle_bytes(side, length);
    return true;
}

static bool wrap_static(struct side *side, const uint32_t *numbers)
{
    static const char text[] = "the quick brown fox jumps over the lazy dog";
    size_t length = numbers[0] % sizeof(text);

    empty(side);
    PROPERTY(weir_buf_wrap_static(text, length, &side->buf) == 0);
    PROPERTY(settle(side, length, length));
    settle_bytes(side, length);
    side->model.is_read_only = true;
    return true;
}

static bool retain(struct side *side, const uint32_t *numbers)
{
    (void)numbers;
    weir_buf_retain(side->buf);
    model_retain(&side->model);
    return true;
}

/* ---- views ---- */

/* Where a new view goes; another side than that which it is made of. */
static struct side *target(const struct side *side, uint32_t number)
{
    size_t from = (size_t)(side - side->all);

    return &side->all[(from + 1 + number % (SIDES - 1)) % SIDES];
}

static void take_view(struct side *view, weir_buf *buf, const struct side *of, size_t offset,
                      size_t length)
{
    empty(view);
    view->buf = buf;
    view->base = base_of(buf);
    model_create_view(&view->model, &of->model, offset, length);
}

static bool slice(struct side *side, const uint32_t *numbers)
{
    size_t offset = around(numbers[0], side->model.write);
    size_t length = around(numbers[1], side->model.write);
    int err = model_may_get(&side->model, offset, length);
    weir_buf *buf = NULL;

    PROPERTY(weir_buf_slice(side->buf, offset, length, &buf) == err);
    if (err == 0)
        take_view(target(side, numbers[2]), buf, side, offset, length);
    return true;
}

static bool read_slice(struct side *side, const uint32_t *numbers)
{
    size_t length = around(numbers[0], model_readable(&side->model));
    size_t offset = side->model.read;
    int err = model_may_read(&side->model, length);
    weir_buf *buf = NULL;

    PROPERTY(weir_buf_read_slice(side->buf, length, &buf) == err);
    if (err == 0) {
        side->model.read += length;
        take_view(target(side, numbers[1]), buf, side, offset, length);
    }
    return true;
}

static void take_duplicate(struct side *view, weir_buf *buf, const struct side *of)
{
    take_view(view, buf, of, 0, of->model.capacity);
    view->model.read = of->model.read;
    view->model.write = of->model.write;
}

static bool duplicate(struct side *side, const uint32_t *numbers)
{
    weir_buf *buf;

    PROPERTY(weir_buf_duplicate(side->buf, &buf) == 0);
    take_duplicate(target(side, numbers[0]), buf, side);
    return true;
}

static bool read_only(struct side *side, const uint32_t *numbers)
{
    struct side *view = target(side, numbers[0]);
    weir_buf *buf;

    PROPERTY(weir_buf_read_only(side->buf, &buf) == 0);
    take_duplicate(view, buf, side);
    view->model.is_read_only = true;
    return true;
}

static bool copy(struct side *side, const uint32_t *numbers)
{
    struct side *to = target(side, numbers[2]);
    size_t offset = around(numbers[0], side->model.write);
    size_t length = around(numbers[1], side->model.write);
    int err = model_may_get(&side->model, offset, length);
    weir_buf *buf = NULL;

    PROPERTY(weir_buf_copy(side->buf, offset, length, &buf) == err);
    if (err < 0)
        return true;
    empty(to);
    to->buf = buf;
    PROPERTY(settle(to, length, WEIR_BUF_MAX));
    for (size_t i = 0; i < length; i++)
        model_append(&to->model, model_get(&side->model, offset + i));
    return true;
}

/* ---- indices ---- */

static bool set_read_index(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.write);
    int err = index <= side->model.write ? 0 : WEIR_EBOUNDS;

    PROPERTY(weir_buf_set_read_index(side->buf, index) == err);
    if (err == 0)
        side->model.read = index;
    return true;
}

static void end_at(struct side *side, size_t index)
{
    model_learn(&side->model, side->base, index);
    side->model.write = index;
}

static bool set_write_index(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.capacity);
    bool fits = index >= side->model.read && index <= side->model.capacity;
    int err = side->model.is_read_only ? -EROFS : fits ? 0 : WEIR_EBOUNDS;

    PROPERTY(weir_buf_set_write_index(side->buf, index) == err);
    if (err == 0)
        end_at(side, index);
    return true;
}

static bool skip_bytes(struct side *side, const uint32_t *numbers)
{
    size_t length = around(numbers[0], model_readable(&side->model));
    int err = model_may_read(&side->model, length);

    PROPERTY(weir_buf_skip(side->buf, length) == err);
    if (err == 0)
        side->model.read += length;
    return true;
}

static bool advance(struct side *side, const uint32_t *numbers)
{
    size_t room = side->model.capacity - side->model.write;
    size_t length = around(numbers[0], room);
    int err = side->model.is_read_only ? -EROFS : length <= room ? 0 : WEIR_EBOUNDS;

    PROPERTY(weir_buf_advance(side->buf, length) == err);
    if (err == 0)
        end_at(side, side->model.write + length);
    return true;
}

static bool clear(struct side *side, const uint32_t *numbers)
{
    (void)numbers;
    weir_buf_clear(side->buf);
    if (!side->model.is_read_only)
        side->model.write = 0;
    side->model.read = side->model.write;
    return true;
}

/* ---- memory ---- */

static bool reserve(struct side *side, const uint32_t *numbers)
{
    size_t length = around(numbers[0], SIZE_LIMIT);
    bool has_room = length <= side->model.capacity - side->model.write;
    int err = model_may_write(&side->model, length);
    size_t power = 64;

    PROPERTY(weir_buf_reserve(side->buf, length) == err);
    if (err < 0)
        return true;
    PROPERTY((base_of(side->buf) == side->base) == has_room);
    while (!has_room && power < side->model.write + length)
        power *= 2;
    PROPERTY(follow(side));
    PROPERTY(has_room || side->model.capacity >= power || side->model.capacity == side->model.max);
    return true;
}

static bool set_capacity(struct side *side, const uint32_t *numbers)
{
    size_t capacity = around(numbers[0], SIZE_LIMIT);
    bool fits = capacity >= side->model.write && capacity <= side->model.max;
    int err = side->model.is_read_only ? -EROFS : fits ? 0 : WEIR_EBOUNDS;

    PROPERTY(weir_buf_set_capacity(side->buf, capacity) == err);
    if (err < 0)
        return true;
    PROPERTY(weir_buf_capacity(side->buf) >= capacity);
    return follow(side);
}

static bool discard(struct side *side, const uint32_t *numbers)
{
    int err = model_may_move_bytes(&side->model);

    (void)numbers;
    PROPERTY(weir_buf_discard(side->buf) == err);
    if (err == 0)
        model_discard(&side->model);
    return true;
}

static bool compact(struct side *side, const uint32_t *numbers)
{
    int err = model_may_move_bytes(&side->model);

    (void)numbers;
    PROPERTY(weir_buf_compact(side->buf) == err);
    if (err < 0)
        return true;
    model_discard(&side->model);
    return follow(side);
}

/* ---- numbers ---- */

static const struct number *number_of(uint32_t number)
{
    return &number_table[number % (sizeof(number_table) / sizeof(number_table[0]))];
}

static bool get_number(struct side *side, const uint32_t *numbers)
{
    const struct number *number = number_of(numbers[0]);
    size_t index = around(numbers[1], side->model.write);
    int err = model_may_get(&side->model, index, number->size);
    uint64_t bits;

    PROPERTY(number->get(side->buf, index, &bits) == err);
    PROPERTY(err < 0 || bits == model_number(&side->model, index, number->size, number->is_little));
    return true;
}

static void model_set_number(struct model *model, size_t index, size_t size, bool is_little,
                             uint64_t value)
{
    for (size_t i = 0; i < size; i++)
        model_set(model, index + i, model_byte_of(value, size, is_little, i));
}

static bool set_number(struct side *side, const uint32_t *numbers)
{
    const struct number *number = number_of(numbers[0]);
    size_t index = around(numbers[1], side->model.write);
    int err = model_may_set(&side->model, index, number->size);

    PROPERTY(number->set(side->buf, index, wide(numbers[2])) == err);
    if (err == 0)
        model_set_number(&side->model, index, number->size, number->is_little, wide(numbers[2]));
    return true;
}

static bool read_number(struct side *side, const uint32_t *numbers)
{
    const struct number *number = number_of(numbers[0]);
    int err = model_may_read(&side->model, number->size);
    uint64_t peeked, bits;

    PROPERTY(number->peek(side->buf, &peeked) == err);
    PROPERTY(number->read(side->buf, &bits) == err);
    if (err < 0)
        return true;
    PROPERTY(bits == peeked);
    PROPERTY(bits == model_number(&side->model, side->model.read, number->size, number->is_little));
    side->model.read += number->size;
    return true;
}

/* The buffer has room now, perhaps in other memory; the model appends the same. */
static bool append_number(struct side *side, size_t size, bool is_little, uint64_t value)
{
    PROPERTY(follow(side));
    for (size_t i = 0; i < size; i++)
        model_append(&side->model, model_byte_of(value, size, is_little, i));
    return true;
}

static bool write_number(struct side *side, const uint32_t *numbers)
{
    const struct number *number = number_of(numbers[0]);
    uint64_t value = wide(numbers[1]);
    int err = model_may_write(&side->model, number->size);

    PROPERTY(number->write(side->buf, value) == err);
    return err < 0 || append_number(side, number->size, number->is_little, value);
}

static int uint_error(size_t size, uint64_t value)
{
    if (size < 1 || size > 8)
        return -EINVAL;
    return size < 8 && value >= UINT64_C(1) << 8 * size ? -EOVERFLOW : 0;
}

static bool get_and_read_uint(struct side *side, const uint32_t *numbers)
{
    size_t size = numbers[0] % 10, index = around(numbers[1], side->model.write);
    bool is_little = numbers[2] % 2 == 1;
    enum weir_byte_order order = is_little ? WEIR_LITTLE_ENDIAN : WEIR_BIG_ENDIAN;
    int err = uint_error(size, 0);
    int get_err = err < 0 ? err : model_may_get(&side->model, index, size);
    int read_err = err < 0 ? err : model_may_read(&side->model, size);
    uint64_t value = 0;

    PROPERTY(weir_buf_get_uint(side->buf, index, size, order, &value) == get_err);
    PROPERTY(get_err < 0 || value == model_number(&side->model, index, size, is_little));
    PROPERTY(weir_buf_read_uint(side->buf, size, order, &value) == read_err);
    if (read_err < 0)
        return true;
    PROPERTY(value == model_number(&side->model, side->model.read, size, is_little));
    side->model.read += size;
    return true;
}

static bool set_uint(struct side *side, const uint32_t *numbers)
{
    size_t size = numbers[0] % 10, index = around(numbers[1], side->model.write);
    uint64_t value = wide(numbers[2]);
    int err = uint_error(size, value);

    err = err < 0 ? err : model_may_set(&side->model, index, size);
    PROPERTY(weir_buf_set_uint(side->buf, index, size, WEIR_LITTLE_ENDIAN, value) == err);
    if (err == 0)
        model_set_number(&side->model, index, size, true, value);
    return true;
}

static bool write_uint(struct side *side, const uint32_t *numbers)
{
    size_t size = numbers[0] % 10;
    uint64_t value = wide(numbers[1]);
    int err = uint_error(size, value);

    err = err < 0 ? err : model_may_write(&side->model, size);
    PROPERTY(weir_buf_write_uint(side->buf, size, WEIR_BIG_ENDIAN, value) == err);
    return err < 0 || append_number(side, size, false, value);
}

static bool get_varint(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.write);
    uint64_t expected = 1, value = 1;
    size_t expected_length = 1, length = 1;
    int err = model_varint(&side->model, index, &expected, &expected_length);

    PROPERTY(weir_buf_get_varint(side->buf, index, &value, &length) == err);
    PROPERTY(value == expected && length == expected_length);
    return true;
}

static bool get_varint_signed(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.write);
    uint64_t folded = 0;
    int64_t value = 0;
    size_t expected_length = 1, length = 1;
    int err = model_varint(&side->model, index, &folded, &expected_length);
    int64_t half = (int64_t)(folded / 2);

    PROPERTY(weir_buf_get_varint_signed(side->buf, index, &value, &length) == err);
    PROPERTY(value == (folded % 2 == 0 ? half : -half - 1) && length == expected_length);
    return true;
}

static bool read_varint(struct side *side, const uint32_t *numbers)
{
    uint64_t expected = 1, value = 1;
    size_t length = 0;
    int err = model_varint(&side->model, side->model.read, &expected, &length);

    (void)numbers;
    PROPERTY(weir_buf_read_varint(side->buf, &value) == err);
    PROPERTY(value == expected);
    side->model.read += length;
    return true;
}

static bool read_varint_signed(struct side *side, const uint32_t *numbers)
{
    uint64_t folded = 0;
    int64_t value = 0;
    size_t length = 0;
    int err = model_varint(&side->model, side->model.read, &folded, &length);
    int64_t half = (int64_t)(folded / 2);

    (void)numbers;
    PROPERTY(weir_buf_read_varint_signed(side->buf, &value) == err);
    PROPERTY(value == (folded % 2 == 0 ? half : -half - 1));
    side->model.read += length;
    return true;
}

static bool append_varint(struct side *side, uint64_t value)
{
    PROPERTY(follow(side));
    for (; value >= 128; value /= 128)
        model_append(&side->model, (uint8_t)(value % 128 + 128));
    model_append(&side->model, (uint8_t)value);
    return true;
}

static size_t varint_length(uint64_t value)
{
    size_t length = 1;

    for (; value >= 128; value /= 128)
        length++;
    return length;
}

static bool write_varint(struct side *side, const uint32_t *numbers)
{
    uint64_t value = wide(numbers[0]) >> numbers[1] % 64;
    int err = model_may_write(&side->model, varint_length(value));

    PROPERTY(weir_varint_length(value) == varint_length(value));
    PROPERTY(weir_buf_write_varint(side->buf, value) == err);
    return err < 0 || append_varint(side, value);
}

static bool write_varint_signed(struct side *side, const uint32_t *numbers)
{
    int64_t value = (int64_t)(wide(numbers[0]) >> 1 >> numbers[1] % 63);
    bool is_negative = numbers[2] % 2 == 1;
    uint64_t folded = 2 * (uint64_t)value + is_negative;
    int err = model_may_write(&side->model, varint_length(folded));

    PROPERTY(weir_buf_write_varint_signed(side->buf, is_negative ? -value - 1 : value) == err);
    return err < 0 || append_varint(side, folded);
}

/* ---- bytes ---- */

static bool same_as_model(const struct side *side, size_t index, const uint8_t *bytes,
                          size_t length)
{
    for (size_t i = 0; i < length; i++)
        PROPERTY(bytes[i] == model_get(&side->model, index + i));
    return true;
}

/* Something that is as long as may be asked for; longer requests must fail. */
static uint8_t *scratch(const struct side *side)
{
    return model_allocate(side->model.write + SIZE_LIMIT);
}

static bool get_bytes(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.write);
    size_t length = around(numbers[1], side->model.write);
    int err = model_may_get(&side->model, index, length);
    uint8_t *bytes = scratch(side);
    bool is_same;
    int actual;

    actual = weir_buf_get_bytes(side->buf, index, bytes, length);
    is_same = err < 0 || same_as_model(side, index, bytes, length);
    free(bytes);
    PROPERTY(actual == err && is_same);
    return true;
}

static bool read_bytes(struct side *side, const uint32_t *numbers)
{
    size_t length = around(numbers[0], model_readable(&side->model));
    int err = model_may_read(&side->model, length);
    uint8_t *peeked = scratch(side), *bytes = scratch(side);
    int peek_err, read_err;
    bool is_same;

    peek_err = weir_buf_peek_bytes(side->buf, peeked, length);
    read_err = weir_buf_read_bytes(side->buf, bytes, length);
    is_same = err < 0 || (same_as_model(side, side->model.read, bytes, length) &&
                          memcmp(bytes, peeked, length) == 0);
    free(peeked);
    free(bytes);
    PROPERTY(peek_err == err && read_err == err && is_same);
    if (err == 0)
        side->model.read += length;
    return true;
}

static bool lend_spans(struct side *side, const uint32_t *numbers)
{
    size_t index = around(numbers[0], side->model.write);
    size_t length = around(numbers[1], side->model.write);
    int err = model_may_get(&side->model, index, length);
    int read_err = model_may_read(&side->model, length);
    weir_span span = weir_buf_span(side->buf);

    PROPERTY(span.data == side->base + side->model.read);
    PROPERTY(span.length == model_readable(&side->model));
    PROPERTY(weir_buf_get_span(side->buf, index, length, &span) == err);
    PROPERTY(err < 0 || (span.data == side->base + index && span.length == length));
    PROPERTY(weir_buf_peek_span(side->buf, length, &span) == read_err);
    PROPERTY(weir_buf_read_span(side->buf, length, &span) == read_err);
    if (read_err < 0)
        return true;
    PROPERTY(span.data == side->base + side->model.read && span.length == length);
    side->model.read += length;
    return true;
}

static bool set_bytes(struct side *side, const uint32_t *numbers)
{
    uint8_t bytes[SIZE_LIMIT] = {0};
    size_t index = around(numbers[0], side->model.write), length = small(numbers[1]);
    int err = model_may_set(&side->model, index, length);

    fill_pattern(numbers[2], bytes, length);
    PROPERTY(weir_buf_set_bytes(side->buf, index, bytes, length) == err);
    for (size_t i = 0; err == 0 && i < length; i++)
        model_set(&side->model, index + i, bytes[i]);
    return true;
}

/* The buffer has appended these bytes. */
static bool append_bytes(struct side *side, const uint8_t *bytes, size_t length)
{
    PROPERTY(follow(side));
    for (size_t i = 0; i < length; i++)
        model_append(&side->model, bytes[i]);
    return true;
}

static bool write_bytes(struct side *side, const uint32_t *numbers)
{
    uint8_t bytes[SIZE_LIMIT] = {0};
    size_t length = small(numbers[0]);
    int err = model_may_write(&side->model, length);

    fill_pattern(numbers[1], bytes, length);
    PROPERTY(weir_buf_write_bytes(side->buf, bytes, length) == err);
    return err < 0 || append_bytes(side, bytes, length);
}

static bool write_fill(struct side *side, const uint32_t *numbers)
{
    uint8_t bytes[SIZE_LIMIT + 3];
    size_t length = around(numbers[0], SIZE_LIMIT);
    int err = model_may_write(&side->model, length);

    memset(bytes, (int)(numbers[1] % 256), sizeof(bytes));
    PROPERTY(weir_buf_write_fill(side->buf, (uint8_t)numbers[1], length) == err);
    return err < 0 || append_bytes(side, bytes, length);
}

/* The model goes byte by byte through a copy: both may look at the same memory. */
static bool write_buf(struct side *side, const uint32_t *numbers)
{
    struct side *from = target(side, numbers[1]);
    size_t length;
    uint8_t *bytes;
    bool is_well;
    int err;

    PROPERTY(weir_buf_write_buf(side->buf, side->buf, 0) == -EINVAL);
    if (from->buf == NULL)
        return true;
    length = around(numbers[0], model_readable(&from->model));
    err = model_may_read(&from->model, length);
    err = err < 0 ? err : model_may_write(&side->model, length);
    bytes = scratch(from);
    for (size_t i = 0; err == 0 && i < length; i++)
        bytes[i] = model_get(&from->model, from->model.read + i);
    is_well = weir_buf_write_buf(side->buf, from->buf, length) == err;
    if (err == 0) {
        is_well = is_well && append_bytes(side, bytes, length);
        from->model.read += length;
    }
    free(bytes);
    PROPERTY(is_well);
    return true;
}

/* ---- text ---- */

static bool write_string(struct side *side, const uint32_t *numbers)
{
    char text[SIZE_LIMIT + 1];
    size_t length = small(numbers[0]);
    int err = model_may_write(&side->model, length);

    memset(text, 'a' + (int)(numbers[1] % 26), length);
    text[length] = '\0';
    PROPERTY(weir_buf_write_string(side->buf, text) == err);
    return err < 0 || append_bytes(side, (const uint8_t *)text, length);
}

static bool print(struct side *side, const uint32_t *numbers)
{
    char text[SIZE_LIMIT + 16];
    int width = (int)small(numbers[0]);
    int length = snprintf(text, sizeof(text), "%*u;", width, numbers[1]);
    int err = model_may_write(&side->model, (size_t)length);

    PROPERTY(weir_buf_printf(side->buf, "%*u;", width, numbers[1]) == err);
    return err < 0 || append_bytes(side, (const uint8_t *)text, (size_t)length);
}

static bool read_string(struct side *side, const uint32_t *numbers)
{
    char text[64] = "";
    size_t length = around(numbers[0], model_readable(&side->model));
    size_t size = numbers[1] % (sizeof(text) + 1);
    int err = model_may_read(&side->model, length);

    if (err == 0 && length >= size)
        err = -ENOSPC;
    PROPERTY(weir_buf_read_string(side->buf, length, text, size) == err);
    if (err < 0)
        return true;
    PROPERTY(text[length] == '\0');
    PROPERTY(same_as_model(side, side->model.read, (const uint8_t *)text, length));
    side->model.read += length;
    return true;
}

/* ---- search ---- */

/* The first index from `from` on with these `length` bytes, by checking every one. */
static ssize_t find_plainly(const struct model *model, size_t from, const uint8_t *bytes,
                            size_t length)
{
    if (from > model->write)
        return WEIR_EBOUNDS;
    for (; model_has(model, from, length); from++) {
        size_t same_count = 0;

        while (same_count < length && bytes[same_count] == model_get(model, from + same_count))
            same_count++;
        if (same_count == length)
            return (ssize_t)from;
    }
    return -ENOENT;
}

static bool find(struct side *side, const uint32_t *numbers)
{
    size_t from = around(numbers[0], side->model.write);
    uint8_t byte = pattern(numbers[1], 0);

    PROPERTY(weir_buf_find(side->buf, from, byte) == find_plainly(&side->model, from, &byte, 1));
    return true;
}

/* Mostly a part of the contents, sometimes with another end. */
static bool find_sequence(struct side *side, const uint32_t *numbers)
{
    size_t from = around(numbers[0], side->model.write);
    size_t at = numbers[1] % (side->model.write + 1);
    size_t length = side->model.write - at;
    uint8_t bytes[8];

    length = length < numbers[2] % sizeof(bytes) ? length : numbers[2] % sizeof(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = model_get(&side->model, at + i);
    if (length > 0 && numbers[2] / sizeof(bytes) % 4 == 0)
        bytes[length - 1] ^= 1;
    PROPERTY(weir_buf_find_sequence(side->buf, from, weir_span_of(bytes, length)) ==
             find_plainly(&side->model, from, bytes, length));
    return true;
}

static bool find_any(struct side *side, const uint32_t *numbers)
{
    size_t from = around(numbers[0], side->model.write);
    size_t count = numbers[1] % 12;
    ssize_t first = from > side->model.write ? WEIR_EBOUNDS : -ENOENT;
    uint8_t bytes[12] = {0};
    weir_byte_set set;

    fill_pattern(numbers[2], bytes, count);
    weir_byte_set_init(&set, bytes, count);
    for (size_t i = 0; i < count; i++) {
        ssize_t at = find_plainly(&side->model, from, &bytes[i], 1);

        if (at >= 0 && (first < 0 || at < first))
            first = at;
    }
    PROPERTY(weir_buf_find_any(side->buf, from, &set) == first);
    return true;
}

static int compare_plainly(const struct model *a, const struct model *b)
{
    for (size_t i = 0; i < model_readable(a) && i < model_readable(b); i++) {
        int difference = model_get(a, a->read + i) - model_get(b, b->read + i);

        if (difference != 0)
            return difference;
    }
    return model_readable(a) == model_readable(b)  ? 0
           : model_readable(a) < model_readable(b) ? -1
                                                   : 1;
}

static bool compare(struct side *side, const uint32_t *numbers)
{
    struct side *other = target(side, numbers[0]);
    int expected, actual;

    if (other->buf == NULL)
        return true;
    expected = compare_plainly(&side->model, &other->model);
    actual = weir_buf_compare(side->buf, other->buf);
    PROPERTY((expected < 0) == (actual < 0) && (expected > 0) == (actual > 0));
    PROPERTY(weir_buf_equal(side->buf, other->buf) == (expected == 0));
    PROPERTY(expected != 0 || weir_buf_hash(side->buf, 1) == weir_buf_hash(other->buf, 1));
    return true;
}

/* ---- sequences ---- */

/* clang-format off */
#define STEP_MAP(XX) \
    XX(create) XX(create_from) XX(wrap) XX(wrap_static) XX(retain) XX(release) XX(slice) \
    XX(read_slice) XX(duplicate) XX(read_only) XX(copy) XX(set_read_index) XX(set_write_index) \
    XX(skip_bytes) XX(advance) XX(clear) XX(reserve) XX(set_capacity) XX(discard) XX(compact) \
    XX(get_number) XX(set_number) XX(read_number) XX(write_number) XX(get_and_read_uint) \
    XX(set_uint) XX(write_uint) XX(get_varint) XX(get_varint_signed) XX(read_varint) \
    XX(read_varint_signed) XX(write_varint) XX(write_varint_signed) XX(get_bytes) \
    XX(read_bytes) XX(lend_spans) XX(set_bytes) XX(write_bytes) XX(write_fill) XX(write_buf) \
    XX(write_string) XX(print) XX(read_string) XX(find) XX(find_sequence) XX(find_any) XX(compare)
/* clang-format on */

#define STEP_FUNCTION(name) name,
#define STEP_NAME(name) #name,

static bool (*const steps[])(struct side *side,
                             const uint32_t *numbers) = {STEP_MAP(STEP_FUNCTION)};
static const char *const step_names[] = {STEP_MAP(STEP_NAME)};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void begin(void *state)
{
    struct side *sides = state;

    for (int i = 0; i < SIDES; i++)
        sides[i].all = sides;
}

static bool do_to_both(void *state, const struct property_step *step)
{
    struct side *sides = state, *side = &sides[step->kind % SIDES];
    bool is_well = side->buf == NULL ? create(side, step->numbers)
                                     : steps[step->kind / SIDES](side, step->numbers);

    for (int i = 0; is_well && i < SIDES; i++)
        is_well = sides[i].buf == NULL || same(&sides[i]);
    return is_well;
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    snprintf(text, size, "%c: %-20s %u %u %u", (int)('A' + step->kind % SIDES),
             step_names[step->kind / SIDES], step->numbers[0], step->numbers[1], step->numbers[2]);
}

static void end(void *state)
{
    struct side *sides = state;

    for (int i = 0; i < SIDES; i++)
        empty(&sides[i]);
}

static const struct property like_the_model = {
    .name = "buf",
    .state_size = SIDES * sizeof(struct side),
    .kinds = SIDES * STEPS,
    .begin = begin,
    .step = do_to_both,
    .describe = describe,
    .end = end,
};

/* Two million steps. */
TEST(buf_model, buffers_behave_like_plain_arrays_of_bytes)
{
    property_check(&like_the_model, 10000, 200);
}
