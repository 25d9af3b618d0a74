/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capture files for tests, and their content as tshark reads it.
 */
#ifndef WEIR_TEST_CAPTURE_H
#define WEIR_TEST_CAPTURE_H

#include <weir/diagnostics.h>

#include "support/test.h"

struct capture {
    char path[32];
    weir_pcap *pcap;
};

void capture_open(struct capture *capture, uint64_t max_bytes);

/* Releases the capture; and deletes the file. */
void capture_end(struct capture *capture);
void capture_remove(struct capture *capture);

/* Skips the test without tshark. */
void capture_needs_tshark(void);

/* Reads these fields of all packets, one line per packet. */
void capture_read_back(const struct capture *capture, const char *fields, char *text, size_t size);

#define assert_read_back(capture, fields, expected)               \
    do {                                                          \
        char text_[8192];                                         \
        capture_read_back(capture, fields, text_, sizeof(text_)); \
        assert_string_equal(text_, expected);                     \
    } while (0)

#endif
