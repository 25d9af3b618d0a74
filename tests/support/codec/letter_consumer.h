/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler at the tail that records single-byte messages, for tests of read requests:
 *
 *      "ab;cE"     letters; ';' = read_complete, '?' = another message,
 *                  'E' = input closed
 */
#ifndef WEIR_TEST_LETTER_CONSUMER_H
#define WEIR_TEST_LETTER_CONSUMER_H

#include <weir/embedded.h>
#include <weir/handler.h>

#include "support/test.h"

struct letter_log {
    char text[256];
    size_t length;
    size_t count; /* letters so far */
    void (*on_letter)(weir_ctx *ctx, char letter);
    void (*on_complete)(weir_ctx *ctx);
    unsigned depth; /* of nested events */
    unsigned max_depth;
};

extern struct letter_log consumed;

/* Named "consumer". Reset `consumed` before adding it. */
extern const weir_handler letter_consumer;

#define assert_consumed(expected)                     \
    do {                                              \
        consumed.text[consumed.length] = '\0';        \
        assert_string_equal(consumed.text, expected); \
        consumed.length = 0;                          \
    } while (0)

/* Writes the text inbound as one message; requests one read; switches auto-read. */
void letters_put(weir_embedded *embedded, const char *text);
void letters_request(weir_embedded *embedded);
void letters_set_auto_read(weir_embedded *embedded, bool on);

#endif
