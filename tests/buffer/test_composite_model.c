/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A composite compared with a flat array and the lengths of its components: long random sequences
 * of all operations. test_composite.c has single cases.
 */
#include <weir/composite.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/property.h"
#include "support/test.h"

#define BYTES_MAX 2000
#define COMPONENTS_MAX 400
#define COMPONENT_BYTES_MAX 48
#define KEPT_MAX 8

enum {
    RESTART,
    ADD,
    INSERT,
    ADD_NESTED,
    INSERT_NESTED,
    REMOVE,
    CONSOLIDATE,
    DISCARD,
    SET_READ_INDEX,
    SKIP,
    GET_BYTES,
    READ_BYTES,
    GET_NUMBER,
    READ_NUMBER,
    SLICE,
    READ_SLICE,
    COPY,
    IOVECS,
    FIND,
    FIND_ANY,
    FIND_SEQUENCE,
    KIND_COUNT,
};

static const char *const kind_names[KIND_COUNT] = {
    "restart",     "add",         "insert",         "add nested", "insert nested", "remove",
    "consolidate", "discard",     "set read index", "skip",       "get bytes",     "read bytes",
    "get number",  "read number", "slice",          "read slice", "copy",          "iovecs",
    "find",        "find any",    "find sequence",
};

/* A part that was taken out: it must not change, whatever happens to the composite. */
struct kept {
    weir_msg *msg;
    size_t length;
    uint8_t bytes[BYTES_MAX];
};

struct pair {
    weir_composite *composite;
    size_t max_components;

    uint8_t bytes[BYTES_MAX];
    size_t length;
    size_t read;
    size_t lengths[COMPONENTS_MAX];
    size_t count;

    struct kept kept[KEPT_MAX];
    size_t next_kept;
};

/* A number up to and including `limit`. */
static size_t up_to(uint32_t number, size_t limit)
{
    return number % (limit + 1);
}

/* Sometimes one beyond the end. */
static size_t index_from(uint32_t number, size_t end)
{
    return up_to(number, end + 1);
}

/* ---- the model ---- */

static size_t model_begin(const struct pair *pair, size_t component)
{
    size_t begin = 0;

    for (size_t i = 0; i < component; i++)
        begin += pair->lengths[i];
    return begin;
}

static void model_insert(struct pair *pair, size_t component, const uint8_t *bytes, size_t length)
{
    size_t begin = model_begin(pair, component);

    memmove(pair->bytes + begin + length, pair->bytes + begin, pair->length - begin);
    memcpy(pair->bytes + begin, bytes, length);
    pair->length += length;
    memmove(pair->lengths + component + 1, pair->lengths + component,
            (pair->count - component) * sizeof(pair->lengths[0]));
    pair->lengths[component] = length;
    pair->count++;
    if (pair->read > begin)
        pair->read += length;
}

static void model_consolidate(struct pair *pair)
{
    if (pair->count <= 1)
        return;
    pair->lengths[0] = pair->length;
    pair->count = 1;
}

static void model_limit(struct pair *pair)
{
    if (pair->count > pair->max_components)
        model_consolidate(pair);
}

static void model_remove(struct pair *pair, size_t component)
{
    size_t begin = model_begin(pair, component);
    size_t length = pair->lengths[component];

    if (pair->read >= begin + length)
        pair->read -= length;
    else if (pair->read > begin)
        pair->read = begin;
    memmove(pair->bytes + begin, pair->bytes + begin + length, pair->length - begin - length);
    pair->length -= length;
    memmove(pair->lengths + component, pair->lengths + component + 1,
            (pair->count - component - 1) * sizeof(pair->lengths[0]));
    pair->count--;
}

static void model_discard(struct pair *pair)
{
    while (pair->count > 0 && pair->lengths[0] <= pair->read)
        model_remove(pair, 0);
}

/* ---- both agree ---- */

static bool components_agree(struct pair *pair)
{
    weir_span span;

    PROPERTY(weir_composite_count(pair->composite) == pair->count);
    for (size_t i = 0; i < pair->count; i++) {
        PROPERTY(weir_composite_component(pair->composite, i, &span) == 0);
        PROPERTY(span.length == pair->lengths[i]);
        PROPERTY(memcmp(span.data, pair->bytes + model_begin(pair, i), span.length) == 0);
    }
    PROPERTY(weir_composite_component(pair->composite, pair->count, &span) == WEIR_EBOUNDS);
    return true;
}

static bool agree(struct pair *pair)
{
    uint8_t bytes[BYTES_MAX];

    PROPERTY(weir_composite_length(pair->composite) == pair->length);
    PROPERTY(weir_composite_read_index(pair->composite) == pair->read);
    PROPERTY(weir_composite_readable(pair->composite) == pair->length - pair->read);
    PROPERTY(weir_msg_size(weir_composite_msg(pair->composite)) == pair->length - pair->read);
    PROPERTY(weir_composite_get_bytes(pair->composite, 0, bytes, pair->length) == 0);
    PROPERTY(memcmp(bytes, pair->bytes, pair->length) == 0);
    return components_agree(pair);
}

/* ---- parts that are kept ---- */

static bool has_bytes(weir_msg *msg, const uint8_t *bytes, size_t length)
{
    weir_composite *composite = weir_composite_of(msg);
    weir_buf *buf = weir_buf_of(msg);
    uint8_t found[BYTES_MAX];

    if (buf != NULL)
        return weir_buf_readable(buf) == length && memcmp(weir_buf_bytes(buf), bytes, length) == 0;
    return weir_composite_readable(composite) == length &&
           weir_composite_peek_bytes(composite, found, length) == 0 &&
           memcmp(found, bytes, length) == 0;
}

/* Takes msg; the message that it replaces must be unchanged. */
static bool keep(struct pair *pair, weir_msg *msg, const uint8_t *bytes, size_t length)
{
    struct kept *kept = &pair->kept[pair->next_kept++ % KEPT_MAX];
    struct kept old = *kept;
    bool unchanged = old.msg == NULL || has_bytes(old.msg, old.bytes, old.length);

    kept->msg = msg;
    kept->length = length;
    memcpy(kept->bytes, bytes, length);
    weir_msg_release(old.msg);
    PROPERTY(unchanged);
    PROPERTY(has_bytes(msg, bytes, length));
    return true;
}

/* ---- what is added ---- */

/* Few different bytes, so that searches find matches and near-matches. */
static void draw_bytes(uint32_t number, uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        number = number * 1664525 + 1013904223;
        bytes[i] = "abc\n"[number >> 30];
    }
}

/* Allocations of the test itself do not fail. */
static void must(int err)
{
    if (err < 0)
        abort();
}

/* A buffer with these readable bytes and others around them, of a kind chosen by `number`. */
static weir_buf *make_buf(struct pair *pair, const uint8_t *bytes, size_t length, uint32_t number)
{
    uint8_t padded[COMPONENT_BYTES_MAX + 8] = "........";
    weir_buf *buf, *view;

    memcpy(padded + 5, bytes, length);
    must(weir_buf_create_from(padded, length + 8, &buf));
    must(weir_buf_set_read_index(buf, 5));
    must(weir_buf_set_write_index(buf, 5 + length));
    if (number % 3 == 0) {
        must(weir_buf_slice(buf, 5, length, &view));
        weir_buf_release(buf);
        return view;
    }
    if (number % 3 == 1) /* has another holder */
        (void)keep(pair, weir_buf_msg(weir_buf_retain(buf)), bytes, length);
    return buf;
}

static bool has_room(const struct pair *pair)
{
    return pair->length + COMPONENT_BYTES_MAX <= BYTES_MAX && pair->count + 3 <= COMPONENTS_MAX;
}

static bool insert_one(struct pair *pair, size_t component, const uint32_t *numbers)
{
    size_t length = up_to(numbers[0], COMPONENT_BYTES_MAX);
    uint8_t bytes[COMPONENT_BYTES_MAX];
    int err;

    if (!has_room(pair))
        return true;
    draw_bytes(numbers[2], bytes, length);
    err = weir_composite_insert(pair->composite, component,
                                weir_buf_msg(make_buf(pair, bytes, length, numbers[2])));
    if (component > pair->count) {
        PROPERTY(err == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(err == 0);
    model_insert(pair, component, bytes, length);
    model_limit(pair);
    return true;
}

struct pieces {
    uint8_t bytes[COMPONENT_BYTES_MAX];
    size_t lengths[3];
    size_t skipped; /* of the first */
};

static void draw_pieces(const uint32_t *numbers, struct pieces *pieces)
{
    draw_bytes(numbers[2], pieces->bytes, sizeof(pieces->bytes));
    for (int i = 0; i < 3; i++)
        pieces->lengths[i] = up_to(numbers[0] >> (5 * i), COMPONENT_BYTES_MAX / 3);
    pieces->skipped = up_to(numbers[2], pieces->lengths[0]);
}

static weir_composite *make_nested(struct pair *pair, const struct pieces *pieces, uint32_t number)
{
    const uint8_t *bytes = pieces->bytes;
    weir_composite *nested;

    must(weir_composite_create(0, &nested));
    for (uint32_t i = 0; i < 3; i++) {
        weir_buf *buf = make_buf(pair, bytes, pieces->lengths[i], number + i);

        must(weir_composite_add(nested, weir_buf_msg(buf)));
        bytes += pieces->lengths[i];
    }
    must(weir_composite_skip(nested, pieces->skipped));
    if (number % 2 == 0)
        (void)keep(pair, weir_composite_msg(weir_composite_retain(nested)),
                   pieces->bytes + pieces->skipped, weir_composite_readable(nested));
    return nested;
}

/* Components of the nested composite that were read completely are not inserted. */
static void model_insert_pieces(struct pair *pair, size_t component, const struct pieces *pieces)
{
    const uint8_t *bytes = pieces->bytes + pieces->skipped;
    bool begun = false;

    for (int i = 0; i < 3; i++) {
        size_t length = pieces->lengths[i] - (i == 0 ? pieces->skipped : 0);

        begun |= length > 0;
        if (begun)
            model_insert(pair, component++, bytes, length);
        bytes += length;
    }
}

static bool insert_nested(struct pair *pair, size_t component, const uint32_t *numbers)
{
    weir_composite *nested;
    struct pieces pieces;
    int err;

    if (!has_room(pair))
        return true;
    draw_pieces(numbers, &pieces);
    nested = make_nested(pair, &pieces, numbers[2]);
    err = weir_composite_insert(pair->composite, component, weir_composite_msg(nested));
    if (component > pair->count) {
        PROPERTY(err == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(err == 0);
    model_insert_pieces(pair, component, &pieces);
    model_limit(pair);
    return true;
}

/* ---- the other steps ---- */

static void restart(struct pair *pair, size_t max_components)
{
    weir_composite_release(pair->composite);
    must(weir_composite_create(max_components, &pair->composite));
    pair->max_components = max_components > 0 ? max_components : WEIR_COMPOSITE_DEFAULT_MAX;
    pair->length = pair->read = pair->count = 0;
}

static bool remove_one(struct pair *pair, size_t component)
{
    size_t begin, unread;
    weir_buf *buf;

    if (component >= pair->count) {
        PROPERTY(weir_composite_remove(pair->composite, component, &buf) == WEIR_EBOUNDS);
        return true;
    }
    begin = model_begin(pair, component);
    unread = pair->lengths[component];
    if (pair->read > begin)
        unread -= pair->read - begin < unread ? pair->read - begin : unread;
    PROPERTY(weir_composite_remove(pair->composite, component, &buf) == 0);
    PROPERTY(keep(pair, weir_buf_msg(buf), pair->bytes + begin + pair->lengths[component] - unread,
                  unread));
    model_remove(pair, component);
    return true;
}

static bool model_has(const struct pair *pair, size_t index, size_t length)
{
    return index <= pair->length && length <= pair->length - index;
}

static bool get_bytes(struct pair *pair, size_t index, size_t length)
{
    uint8_t bytes[BYTES_MAX + 1];

    if (!model_has(pair, index, length)) {
        PROPERTY(weir_composite_get_bytes(pair->composite, index, bytes, length) == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(weir_composite_get_bytes(pair->composite, index, bytes, length) == 0);
    PROPERTY(memcmp(bytes, pair->bytes + index, length) == 0);
    return true;
}

static bool read_bytes(struct pair *pair, size_t length)
{
    uint8_t bytes[BYTES_MAX + 1];

    if (length > pair->length - pair->read) {
        PROPERTY(weir_composite_read_bytes(pair->composite, bytes, length) == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(weir_composite_read_bytes(pair->composite, bytes, length) == 0);
    PROPERTY(memcmp(bytes, pair->bytes + pair->read, length) == 0);
    pair->read += length;
    return true;
}

#define CHECK_NUMBER(NAME, type, width, order)                                           \
    static bool get_##NAME(struct pair *pair, size_t index)                              \
    {                                                                                    \
        type value, expected;                                                            \
        int err = weir_composite_get_##NAME(pair->composite, index, &value);             \
                                                                                         \
        PROPERTY(err == (model_has(pair, index, sizeof(type)) ? 0 : WEIR_EBOUNDS));      \
        if (err == 0) {                                                                  \
            expected = weir_load_##NAME(pair->bytes + index);                            \
            PROPERTY(memcmp(&value, &expected, sizeof(value)) == 0);                     \
        }                                                                                \
        return true;                                                                     \
    }                                                                                    \
    static bool read_##NAME(struct pair *pair)                                           \
    {                                                                                    \
        type peeked, value, expected;                                                    \
        int err = weir_composite_peek_##NAME(pair->composite, &peeked);                  \
                                                                                         \
        PROPERTY(err == (model_has(pair, pair->read, sizeof(type)) ? 0 : WEIR_EBOUNDS)); \
        PROPERTY(weir_composite_read_##NAME(pair->composite, &value) == err);            \
        if (err == 0) {                                                                  \
            expected = weir_load_##NAME(pair->bytes + pair->read);                       \
            PROPERTY(memcmp(&peeked, &expected, sizeof(value)) == 0);                    \
            PROPERTY(memcmp(&value, &expected, sizeof(value)) == 0);                     \
            pair->read += sizeof(type);                                                  \
        }                                                                                \
        return true;                                                                     \
    }
WEIR_NUMBER_MAP(CHECK_NUMBER)

static const struct {
    bool (*get)(struct pair *pair, size_t index);
    bool (*read)(struct pair *pair);
} numbers_of[] = {
#define NUMBER_ROW(NAME, type, width, order) {get_##NAME, read_##NAME},
    WEIR_NUMBER_MAP(NUMBER_ROW)
#undef NUMBER_ROW
};

#define NUMBER_KINDS (sizeof(numbers_of) / sizeof(numbers_of[0]))

static bool slice(struct pair *pair, size_t index, size_t length)
{
    weir_msg *msg;

    if (!model_has(pair, index, length)) {
        PROPERTY(weir_composite_slice(pair->composite, index, length, &msg) == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(weir_composite_slice(pair->composite, index, length, &msg) == 0);
    return keep(pair, msg, pair->bytes + index, length);
}

static bool read_slice(struct pair *pair, size_t length)
{
    weir_msg *msg;

    if (length > pair->length - pair->read) {
        PROPERTY(weir_composite_read_slice(pair->composite, length, &msg) == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(weir_composite_read_slice(pair->composite, length, &msg) == 0);
    pair->read += length;
    return keep(pair, msg, pair->bytes + pair->read - length, length);
}

static bool copy(struct pair *pair, size_t index, size_t length)
{
    weir_buf *buf;

    if (!model_has(pair, index, length)) {
        PROPERTY(weir_composite_copy(pair->composite, index, length, &buf) == WEIR_EBOUNDS);
        return true;
    }
    PROPERTY(weir_composite_copy(pair->composite, index, length, &buf) == 0);
    return keep(pair, weir_buf_msg(buf), pair->bytes + index, length);
}

/* As many as asked for, or all the bytes. */
static bool iovecs(struct pair *pair, size_t count)
{
    struct iovec vectors[16];
    size_t filled = weir_composite_iovecs(pair->composite, vectors, count);
    size_t index = pair->read;

    PROPERTY(filled <= count);
    for (size_t i = 0; i < filled; i++) {
        PROPERTY(vectors[i].iov_len > 0 && model_has(pair, index, vectors[i].iov_len));
        PROPERTY(memcmp(vectors[i].iov_base, pair->bytes + index, vectors[i].iov_len) == 0);
        index += vectors[i].iov_len;
    }
    PROPERTY(filled == count || index == pair->length);
    return true;
}

static bool find(struct pair *pair, size_t from, uint8_t byte)
{
    ssize_t found = weir_composite_find(pair->composite, from, byte);
    const uint8_t *there;

    if (from > pair->length) {
        PROPERTY(found == WEIR_EBOUNDS);
        return true;
    }
    there = memchr(pair->bytes + from, byte, pair->length - from);
    PROPERTY(found == (there != NULL ? there - pair->bytes : -ENOENT));
    return true;
}

static bool find_any(struct pair *pair, size_t from, const char *bytes)
{
    weir_byte_set set;
    ssize_t found, expected = -ENOENT;

    weir_byte_set_init(&set, bytes, strlen(bytes));
    found = weir_composite_find_any(pair->composite, from, &set);
    if (from > pair->length)
        expected = WEIR_EBOUNDS;
    for (size_t i = pair->length; i-- > from;)
        if (weir_byte_set_has(&set, pair->bytes[i]))
            expected = (ssize_t)i;
    PROPERTY(found == expected);
    return true;
}

/* Sequences of the contents, sometimes with one byte changed. */
static bool find_sequence(struct pair *pair, const uint32_t *numbers)
{
    size_t from = index_from(numbers[0], pair->length);
    size_t at = up_to(numbers[1], pair->length);
    size_t length = up_to(numbers[2], pair->length - at);
    uint8_t sequence[BYTES_MAX];
    const uint8_t *there;
    ssize_t found;

    memcpy(sequence, pair->bytes + at, length);
    if (numbers[2] % 4 == 0 && length > 0)
        sequence[length - 1] ^= 1;
    found = weir_composite_find_sequence(pair->composite, from, weir_span_of(sequence, length));
    if (from > pair->length) {
        PROPERTY(found == WEIR_EBOUNDS);
        return true;
    }
    there = memmem(pair->bytes + from, pair->length - from, sequence, length);
    PROPERTY(found == (there != NULL ? there - pair->bytes : -ENOENT));
    return true;
}

static bool set_read_index(struct pair *pair, size_t index)
{
    int expected = index > pair->length ? WEIR_EBOUNDS : 0;

    PROPERTY(weir_composite_set_read_index(pair->composite, index) == expected);
    pair->read = expected == 0 ? index : pair->read;
    return true;
}

static bool skip_bytes(struct pair *pair, size_t length)
{
    int expected = length > pair->length - pair->read ? WEIR_EBOUNDS : 0;

    PROPERTY(weir_composite_skip(pair->composite, length) == expected);
    pair->read += expected == 0 ? length : 0;
    return true;
}

static bool do_to_both(struct pair *pair, uint32_t kind, const uint32_t *numbers)
{
    size_t component = index_from(numbers[1], pair->count);
    size_t index = index_from(numbers[0], pair->length);
    size_t length = index_from(numbers[1], pair->length - (index < pair->length ? index : 0));
    size_t readable = index_from(numbers[0], pair->length - pair->read);

    switch (kind) {
    case RESTART:
        if (numbers[2] % 8 == 0) /* else nothing would become long */
            restart(pair, up_to(numbers[0], 20));
        return true;
    case ADD:
        return insert_one(pair, pair->count, numbers);
    case INSERT:
        return insert_one(pair, component, numbers);
    case ADD_NESTED:
        return insert_nested(pair, pair->count, numbers);
    case INSERT_NESTED:
        return insert_nested(pair, component, numbers);
    case REMOVE:
        return remove_one(pair, component);
    case CONSOLIDATE:
        model_consolidate(pair);
        return weir_composite_consolidate(pair->composite) == 0;
    case DISCARD:
        model_discard(pair);
        weir_composite_discard(pair->composite);
        return true;
    case SET_READ_INDEX:
        return set_read_index(pair, index);
    case SKIP:
        return skip_bytes(pair, readable);
    case GET_BYTES:
        return get_bytes(pair, index, length);
    case READ_BYTES:
        return read_bytes(pair, readable);
    case GET_NUMBER:
        return numbers_of[numbers[1] % NUMBER_KINDS].get(pair, index);
    case READ_NUMBER:
        return numbers_of[numbers[1] % NUMBER_KINDS].read(pair);
    case SLICE:
        return slice(pair, index, length);
    case READ_SLICE:
        return read_slice(pair, readable);
    case COPY:
        return copy(pair, index, length);
    case IOVECS:
        return iovecs(pair, up_to(numbers[0], 16));
    case FIND:
        return find(pair, index, (uint8_t) "abc\n?"[numbers[1] % 5]);
    case FIND_ANY:
        return find_any(pair, index, numbers[1] % 2 == 0 ? "c\n" : "?!");
    default:
        return find_sequence(pair, numbers);
    }
}

/* ---- the property ---- */

static void begin_pair(void *state)
{
    restart(state, 0);
}

static bool step_pair(void *state, const struct property_step *step)
{
    return do_to_both(state, step->kind, step->numbers) && agree(state);
}

static void end_pair(void *state)
{
    struct pair *pair = state;

    weir_composite_release(pair->composite);
    for (size_t i = 0; i < KEPT_MAX; i++)
        weir_msg_release(pair->kept[i].msg);
}

static void describe_step(const struct property_step *step, char *text, size_t size)
{
    snprintf(text, size, "%s %u %u %u", kind_names[step->kind], step->numbers[0], step->numbers[1],
             step->numbers[2]);
}

static const struct property same_as_flat = {
    .name = "composite",
    .state_size = sizeof(struct pair),
    .kinds = KIND_COUNT,
    .begin = begin_pair,
    .step = step_pair,
    .describe = describe_step,
    .end = end_pair,
};

TEST(composite, behaves_as_one_flat_array_of_bytes)
{
    property_check(&same_as_flat, 8000, 250);
}
