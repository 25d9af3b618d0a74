/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROXY headers and their bytes. The two forms are in files of their own, and know nothing of
 * channels.
 */
#ifndef WEIR_CODEC_PROXY_HEADER_H
#define WEIR_CODEC_PROXY_HEADER_H

#include <weir/proxy_protocol.h>

struct weir_proxy_header {
    weir_msg msg; /* first */
    uint8_t version;
    bool is_local;
    bool is_datagram;
    bool checksum; /* is to be sent */
    weir_address source;
    weir_address destination;
    size_t tlv_length;
    uint8_t tlvs[]; /* as they are sent, each as long as it says */
};

/* All of it zero but the message; with room for so many bytes of tlvs. NULL without memory. */
weir_proxy_header *weir__proxy_header_alloc(size_t tlv_length);

/* Whether the tlvs are as long as they say, also those of WEIR_PROXY_SSL. */
bool weir__proxy_tlvs_are_valid(weir_span tlvs);

/*
 * Reads a header from the front of some bytes. Returns how many it takes; 0 if there are too few:
 * then `*ret_need` is how many it wants to see, or 0 if it cannot say; or an error, with the reason
 * in words, for which no further bytes are needed. `max` is the longest header that is read.
 */
ssize_t weir__proxy_read(const uint8_t *bytes, size_t length, size_t max,
                         weir_proxy_header **ret_header, size_t *ret_need, const char **ret_detail);

ssize_t weir__proxy_v1_read(const uint8_t *bytes, size_t length, weir_proxy_header **ret_header,
                            const char **ret_detail);
ssize_t weir__proxy_v2_read(const uint8_t *bytes, size_t length, size_t max,
                            weir_proxy_header **ret_header, size_t *ret_need,
                            const char **ret_detail);

#define WEIR__PROXY_V1_PREFIX "PROXY "
#define WEIR__PROXY_V1_MAX 107 /* with its line end */
#define WEIR__PROXY_V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define WEIR__PROXY_V2_FIXED 16 /* the signature, and what is behind it */

int weir__proxy_v1_write(const weir_proxy_header *header, weir_buf *buf);
int weir__proxy_v2_write(const weir_proxy_header *header, weir_buf *buf);

/* How many bytes the addresses have in version 2. */
size_t weir__proxy_v2_address_length(int family);

#endif
