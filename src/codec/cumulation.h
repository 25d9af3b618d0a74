/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait to be decoded: the buffer that the decoder sees, and the pieces that arrived
 * later.
 *
 *      in: [ seen, incomplete message ]   pieces: [ ... ] [ ... ]
 *
 * When `in` is used up, the next piece replaces it without a copy, so messages that arrive whole
 * are never copied. A message that was split is copied together: if the decoder said how many bytes
 * it needs, once, when all of them are there; otherwise piece by piece, into memory that doubles.
 */
#ifndef WEIR_CODEC_CUMULATION_H
#define WEIR_CODEC_CUMULATION_H

#include <weir/buf.h>
#include <weir/codec.h>

/* weir__cumulation_add if the message becomes a piece. */
int weir__cumulation_add_piece(weir_cumulation *cumulation, weir_msg *msg);

/* Takes: msg, a buffer or a composite. Fails with -ENOMEM, and then discards these bytes. */
static inline int weir__cumulation_add(weir_cumulation *cumulation, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    if (buf == NULL || cumulation->in != NULL || cumulation->pieces != NULL)
        return weir__cumulation_add_piece(cumulation, msg);
    cumulation->in = buf;
    cumulation->stuck = cumulation->need > weir_buf_readable(buf);
    return 0;
}

/* weir__cumulation_next if `in` is used up, or was seen. */
int weir__cumulation_refill(weir_cumulation *cumulation, weir_buf **ret_in);

/*
 * Returns 1 and the bytes to decode next, which are lent until the next call; 0 if the decoder has
 * seen everything. Fails with -ENOMEM, without losing bytes.
 */
static inline int weir__cumulation_next(weir_cumulation *cumulation, weir_buf **ret_in)
{
    weir_buf *in = cumulation->in;

    if (in == NULL || cumulation->stuck || weir_buf_readable(in) == 0)
        return weir__cumulation_refill(cumulation, ret_in);
    *ret_in = in;
    return 1;
}

/* If the decoder has consumed everything, releases it and returns true. */
static inline bool weir__cumulation_release_used(weir_cumulation *cumulation)
{
    if (cumulation->pieces != NULL || weir_buf_readable(cumulation->in) > 0)
        return false;
    weir_buf_release(cumulation->in);
    cumulation->in = NULL;
    return true;
}

/* True if weir__cumulation_next would return bytes. */
bool weir__cumulation_has_next(const weir_cumulation *cumulation);

/* True if no bytes are left, seen or not. */
bool weir__cumulation_is_empty(const weir_cumulation *cumulation);

/* All bytes as one buffer, which may be empty. Fails with -ENOMEM. */
int weir__cumulation_join(weir_cumulation *cumulation, weir_buf **ret_in);

/* Records that the decoder needs more bytes, `need` in total if known; or that it consumed some. */
void weir__cumulation_wait(weir_cumulation *cumulation, size_t need);
void weir__cumulation_advance(weir_cumulation *cumulation);

/* Makes all bytes unseen, so that the decoder is called again. */
void weir__cumulation_retry(weir_cumulation *cumulation);

/* Frees memory that the bytes do not need. Called when no input is expected for a while, and there
 * are bytes or were pieces. */
void weir__cumulation_shrink(weir_cumulation *cumulation);

/* Removes all bytes, as one message, or as one per call if memory is short. NULL when empty. */
weir_msg *weir__cumulation_take(weir_cumulation *cumulation);
void weir__cumulation_clear(weir_cumulation *cumulation);

#endif
