/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROXY headers and their encodings. The two versions are in files of their own, independent of
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
    bool checksum; /* to be sent */
    weir_address source;
    weir_address destination;
    size_t tlv_length;
    uint8_t tlvs[]; /* encoded and validated */
};

/* Allocates a zeroed header with `tlv_length` bytes of TLVs. NULL without memory. */
weir_proxy_header *weir__proxy_header_alloc(size_t tlv_length);

/* True if the lengths of all TLVs are consistent, including those nested in WEIR_PROXY_SSL. */
bool weir__proxy_tlvs_are_valid(weir_span tlvs);

/*
 * Parses a header at the start of `bytes`. Returns its length; 0 if it is incomplete, with the
 * total number of bytes needed in `*ret_need`, or 0 if unknown; or an error as soon as the bytes
 * are invalid, with its detail. `max` is the maximum length of a header.
 */
ssize_t weir__proxy_read(const uint8_t *bytes, size_t length, size_t max,
                         weir_proxy_header **ret_header, size_t *ret_need, const char **ret_detail);

ssize_t weir__proxy_v1_read(const uint8_t *bytes, size_t length, weir_proxy_header **ret_header,
                            const char **ret_detail);
ssize_t weir__proxy_v2_read(const uint8_t *bytes, size_t length, size_t max,
                            weir_proxy_header **ret_header, size_t *ret_need,
                            const char **ret_detail);

#define WEIR__PROXY_V1_PREFIX "PROXY "
#define WEIR__PROXY_V1_MAX 107 /* including the line end */
#define WEIR__PROXY_V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define WEIR__PROXY_V2_FIXED 16 /* the signature and the four bytes after it */

int weir__proxy_v1_write(const weir_proxy_header *header, weir_buf *buf);
int weir__proxy_v2_write(const weir_proxy_header *header, weir_buf *buf);

/* The length of the addresses of a family in version 2. */
size_t weir__proxy_v2_address_length(int family);

#endif
