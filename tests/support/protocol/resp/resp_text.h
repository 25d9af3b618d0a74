/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP values as text, and random values.
 *
 *      +OK   :5   $bytes   _   #t   ,1.5   *(:1 $two)   %($key $value)   |($ttl :9)$about
 */
#ifndef WEIR_TEST_RESP_TEXT_H
#define WEIR_TEST_RESP_TEXT_H

#include <weir/resp.h>

#include "os/random.h"

/* Formatter for struct feed; other messages are "bytes(N)". */
void resp_format(const weir_msg *msg, char *text, size_t size);

/* A random value of any kind except a bulk header, with at most `depth` levels. */
weir_resp *resp_random(weir__random *random, unsigned depth);

#endif
