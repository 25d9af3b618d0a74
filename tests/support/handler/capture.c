/* SPDX-License-Identifier: Apache-2.0 */
#include "support/handler/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void capture_open(struct capture *capture, uint64_t max_bytes)
{
    int file;

    (void)snprintf(capture->path, sizeof(capture->path), "/tmp/weir-pcap-XXXXXX");
    file = mkstemp(capture->path);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(
        weir_pcap_create(WEIR_PCAP_OPTIONS(.path = capture->path, .max_bytes = max_bytes),
                         &capture->pcap),
        0);
}

void capture_end(struct capture *capture)
{
    assert_int_equal(weir_pcap_flush(capture->pcap), 0); /* a loop may hold the last reference */
    weir_pcap_release(capture->pcap);
    capture->pcap = NULL;
}

void capture_remove(struct capture *capture)
{
    assert_int_equal(unlink(capture->path), 0);
}

void capture_needs_tshark(void)
{
    if (system("command -v tshark > /dev/null") != 0)
        WEIR_TEST_SKIP("tshark is missing");
}

/* Treats payloads as plain bytes: otherwise tshark may dissect a random port as some protocol, and
 * report malformed packets. */
void capture_read_back(const struct capture *capture, const char *fields, char *text, size_t size)
{
    char command[1024];
    size_t length;
    FILE *pipe;

    (void)snprintf(command, sizeof(command),
                   "tshark -n -r %s -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE "
                   "-o udp.check_checksum:TRUE -o tcp.relative_sequence_numbers:FALSE "
                   "-d tcp.port==1-65535,data -d udp.port==1-65535,data "
                   "-T fields -E separator=/s %s 2> /dev/null",
                   capture->path, fields);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    length = fread(text, 1, size - 1, pipe);
    text[length] = '\0';
    assert_int_equal(pclose(pipe), 0);
}
