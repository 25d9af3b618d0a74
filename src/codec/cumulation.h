/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that wait to be decoded: a buffer that the decoder looks at, and the pieces that have come
 * after it.
 *
 *      in: [ seen, but no message yet ]   pieces: [ ... ] [ ... ]
 *
 * A piece becomes `in` as it is when that has been used up: so what comes with whole messages is
 * never copied. A message that is cut in two is put together by copying: if the decoder has said
 * how much it needs, only that much, once, and not before all of it is there; otherwise piece by
 * piece, into memory that doubles.
 */
#ifndef WEIR_CODEC_CUMULATION_H
#define WEIR_CODEC_CUMULATION_H

#include <weir/codec.h>

/* Takes: msg, a buffer or a composite. Fails with -ENOMEM: then these bytes are lost. */
int weir__cumulation_add(weir_cumulation *cumulation, weir_msg *msg);

/*
 * What is to be decoded next: 1 and the bytes, which are lent until the next call; 0 if there is
 * nothing that the decoder has not seen. Fails with -ENOMEM: nothing is lost.
 */
int weir__cumulation_next(weir_cumulation *cumulation, weir_buf **ret_in);

/* True if weir__cumulation_next would give something. */
bool weir__cumulation_has_next(const weir_cumulation *cumulation);

/* True if there is no byte left, seen or not. */
bool weir__cumulation_is_empty(const weir_cumulation *cumulation);

/* All of it, seen or not, as one buffer, which may be empty. Fails with -ENOMEM. */
int weir__cumulation_join(weir_cumulation *cumulation, weir_buf **ret_in);

/* The decoder needs more, `need` bytes in all if that is known; or it has gone on. */
void weir__cumulation_wait(weir_cumulation *cumulation, size_t need);
void weir__cumulation_advance(weir_cumulation *cumulation);

/* What the decoder has seen it may see again. */
void weir__cumulation_retry(weir_cumulation *cumulation);

/* Nothing will come for a while: gives memory back that the bytes do not need. */
void weir__cumulation_shrink(weir_cumulation *cumulation);

/* The bytes that are left, as one message, or as two calls' if memory is short; then NULL. */
weir_msg *weir__cumulation_take(weir_cumulation *cumulation);
void weir__cumulation_clear(weir_cumulation *cumulation);

#endif
