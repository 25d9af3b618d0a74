/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/cumulation.h"

#include <errno.h>

#include "base/no_stack_protector.h"
#include "buffer/buf.h"

#define CAPACITY_MIN 64 /* capacity of a buffer that will grow */
#define SMALL_MAX 4096  /* buffers up to this size are not shrunk */
#define PIECES_MAX 16   /* more small pieces than this are merged */

static size_t pieces_length(const weir_cumulation *cumulation)
{
    return cumulation->pieces != NULL ? weir_composite_readable(cumulation->pieces) : 0;
}

static void replace_in(weir_cumulation *cumulation, weir_buf *in)
{
    weir_buf_release(cumulation->in);
    cumulation->in = in;
}

/* If the new bytes are fewer than the decoder needs, it waits for more. */
static void set_in(weir_cumulation *cumulation, weir_buf *in)
{
    cumulation->in = in;
    cumulation->stuck = cumulation->need > weir_buf_readable(in);
}

/* ---- adding ---- */

int weir__cumulation_add_piece(weir_cumulation *cumulation, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    int err = 0;

    if (buf != NULL && cumulation->in == NULL && pieces_length(cumulation) == 0) {
        set_in(cumulation, buf);
        return 0;
    }
    if (cumulation->pieces == NULL)
        err = weir_composite_create(SIZE_MAX, &cumulation->pieces);
    if (err == 0)
        return weir_composite_add(cumulation->pieces, msg);
    weir_msg_release(msg);
    return err;
}

/* ---- merging pieces ---- */

/*
 * The capacity for `length` bytes: what the decoder needs, if known, but at most twice the length.
 */
static size_t capacity_for(const weir_cumulation *cumulation, size_t length)
{
    size_t room = length * 2;

    if (cumulation->need >= length && cumulation->need < room)
        room = cumulation->need;
    return room > CAPACITY_MIN ? room : CAPACITY_MIN;
}

/* Moves the bytes if the buffer is shared or has no space for `more` bytes. */
static int make_room(weir_cumulation *cumulation, size_t more)
{
    weir_buf *in = cumulation->in, *larger;
    size_t length = weir_buf_readable(in);
    int err;

    if (!weir__buf_is_shared(in) && !weir_buf_is_read_only(in) && weir_buf_writable(in) >= more)
        return 0;
    err = weir_buf_create(capacity_for(cumulation, length + more), 0, &larger);
    if (err < 0)
        return err;
    (void)weir_buf_write_bytes(larger, weir_buf_bytes(in), length);
    replace_in(cumulation, larger);
    return 0;
}

static int pull(weir_cumulation *cumulation, size_t length)
{
    int err = make_room(cumulation, length);

    if (err < 0)
        return err;
    err = weir_composite_read_bytes(cumulation->pieces, weir_buf_space(cumulation->in), length);
    if (err < 0)
        return err;
    (void)weir_buf_advance(cumulation->in, length);
    weir_composite_discard(cumulation->pieces);
    return 0;
}

/* The number of bytes to append to `in` before the decoder is called again; 0 = not enough yet. */
static size_t bytes_to_pull(const weir_cumulation *cumulation)
{
    size_t there = weir_buf_readable(cumulation->in), more = pieces_length(cumulation);
    weir_span first;

    if (cumulation->need > there)
        return cumulation->need - there <= more ? cumulation->need - there : 0;
    if (more == 0 || weir_composite_component(cumulation->pieces, 0, &first) < 0)
        return 0;
    return first.length - weir_composite_read_index(cumulation->pieces);
}

WEIR__NO_STACK_PROTECTOR static int take_piece(weir_cumulation *cumulation)
{
    weir_buf *in;
    int err;

    if (pieces_length(cumulation) == 0)
        return 0;
    err = weir_composite_remove(cumulation->pieces, 0, &in);
    if (err < 0)
        return err;
    set_in(cumulation, in);
    return 1;
}

/*
 * A peer can send a message in tiny pieces, each of which occupies a receive buffer that is a
 * thousand times larger. So many small pieces are merged before the message is complete.
 */
static int merge_small_pieces(weir_cumulation *cumulation)
{
    size_t length = pieces_length(cumulation), count;

    if (length == 0)
        return 0;
    count = weir_composite_count(cumulation->pieces);
    return count >= PIECES_MAX && length < count * SMALL_MAX ? pull(cumulation, length) : 0;
}

static int next(weir_cumulation *cumulation)
{
    int err = cumulation->in == NULL ? take_piece(cumulation) : 1;
    size_t more;

    if (err <= 0)
        return err;
    if (!cumulation->stuck)
        return 1;
    more = bytes_to_pull(cumulation);
    if (more == 0)
        return merge_small_pieces(cumulation);
    err = pull(cumulation, more);
    return err < 0 ? err : 1;
}

static bool has_in(const weir_cumulation *cumulation)
{
    return cumulation->in != NULL && weir_buf_readable(cumulation->in) > 0;
}

bool weir__cumulation_has_next(const weir_cumulation *cumulation)
{
    if (!has_in(cumulation))
        return pieces_length(cumulation) > 0;
    return !cumulation->stuck || bytes_to_pull(cumulation) > 0;
}

bool weir__cumulation_is_empty(const weir_cumulation *cumulation)
{
    return !has_in(cumulation) && pieces_length(cumulation) == 0;
}

WEIR__NO_STACK_PROTECTOR int weir__cumulation_refill(weir_cumulation *cumulation, weir_buf **ret_in)
{
    int result;

    if (cumulation->in != NULL && weir_buf_readable(cumulation->in) == 0)
        replace_in(cumulation, NULL);
    result = next(cumulation);
    if (result <= 0)
        return result;
    cumulation->stuck = false;
    *ret_in = cumulation->in;
    return 1;
}

int weir__cumulation_join(weir_cumulation *cumulation, weir_buf **ret_in)
{
    int err = cumulation->in == NULL ? take_piece(cumulation) : 0;

    if (err >= 0 && cumulation->in == NULL)
        err = weir_buf_create(0, 0, &cumulation->in);
    if (err >= 0 && pieces_length(cumulation) > 0)
        err = pull(cumulation, pieces_length(cumulation));
    if (err < 0)
        return err;
    *ret_in = cumulation->in;
    return 0;
}

void weir__cumulation_wait(weir_cumulation *cumulation, size_t need)
{
    cumulation->stuck = true;
    cumulation->need = need;
}

void weir__cumulation_advance(weir_cumulation *cumulation)
{
    cumulation->need = 0;
}

void weir__cumulation_retry(weir_cumulation *cumulation)
{
    cumulation->stuck = false;
    cumulation->need = 0;
}

/* ---- shrinking and clearing ---- */

WEIR__NO_STACK_PROTECTOR void weir__cumulation_shrink(weir_cumulation *cumulation)
{
    weir_buf *in = cumulation->in, *smaller;
    size_t length, capacity;

    if (pieces_length(cumulation) == 0) {
        weir_composite_release(cumulation->pieces);
        cumulation->pieces = NULL;
    }
    if (in == NULL)
        return;
    length = weir_buf_readable(in);
    capacity = weir_buf_capacity(in);
    if (capacity <= SMALL_MAX || length > capacity / 4 || cumulation->need > capacity / 4)
        return;
    if (weir_buf_create(capacity_for(cumulation, length), 0, &smaller) < 0)
        return; /* keep the large one */
    (void)weir_buf_write_bytes(smaller, weir_buf_bytes(in), length);
    replace_in(cumulation, smaller);
}

/* Everything as one message. NULL without memory. */
static weir_msg *take_all(const weir_cumulation *cumulation)
{
    weir_composite *all;

    if (weir_composite_create(SIZE_MAX, &all) < 0)
        return NULL;
    if (weir_composite_add(all, weir_buf_msg(weir_buf_retain(cumulation->in))) == 0 &&
        weir_composite_add(all, weir_msg_retain(weir_composite_msg(cumulation->pieces))) == 0)
        return weir_composite_msg(all);
    weir_composite_release(all);
    return NULL;
}

weir_msg *weir__cumulation_take(weir_cumulation *cumulation)
{
    bool has_pieces = pieces_length(cumulation) > 0;
    weir_msg *left = NULL;

    if (has_in(cumulation) && has_pieces)
        left = take_all(cumulation);
    if (has_in(cumulation) && left == NULL) {
        left = weir_buf_msg(cumulation->in);
        cumulation->in = NULL;
        return left;
    }
    if (has_pieces && left == NULL)
        left = weir_msg_retain(weir_composite_msg(cumulation->pieces));
    weir__cumulation_clear(cumulation);
    return left;
}

void weir__cumulation_clear(weir_cumulation *cumulation)
{
    weir_buf_release(cumulation->in);
    weir_composite_release(cumulation->pieces);
    *cumulation = (weir_cumulation){0};
}
