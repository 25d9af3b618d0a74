/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/proxy_header.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"

#define TLV_HEADER 3 /* 1 byte of type, 2 bytes of length */

static void destroy(weir_msg *msg)
{
    weir__free(msg);
}

const weir_msg_type weir_proxy_header_type = {.name = "proxy-header", .destroy = destroy};

weir_proxy_header *weir__proxy_header_alloc(size_t tlv_length)
{
    weir_proxy_header *header = weir__zalloc(sizeof(*header) + tlv_length);

    if (header != NULL) {
        weir_msg_init(&header->msg, &weir_proxy_header_type);
        header->tlv_length = tlv_length;
    }
    return header;
}

/* ---- creating ---- */

static bool is_supported_family(int family)
{
    return family == AF_INET || family == AF_INET6 || family == AF_UNIX;
}

static bool addresses_match(const weir_proxy_header_options *options)
{
    if (options->source == NULL || options->destination == NULL)
        return options->source == options->destination;
    return !options->is_local && is_supported_family(weir_address_family(options->source)) &&
           weir_address_family(options->source) == weir_address_family(options->destination);
}

static int validate(const weir_proxy_header_options *options)
{
    bool has_more = options->tlv_count > 0 || options->checksum;

    if (!addresses_match(options))
        return weir__options_reject("proxy-header", NULL,
                                    "source and destination must have one family, or both be NULL");
    if (options->version == 1 &&
        (has_more || options->is_datagram || options->is_local ||
         (options->source != NULL && weir_address_family(options->source) == AF_UNIX)))
        return weir__options_reject("proxy-header", NULL,
                                    "version 1 supports two TCP addresses and nothing else");
    if (options->source == NULL && has_more)
        return weir__options_reject("proxy-header", NULL, "tlvs and checksum require addresses");
    return weir__options_check("proxy-header", NULL, WEIR__OPTION(options, version, 1, 2));
}

static int measure_tlvs(const weir_proxy_header_options *options, size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < options->tlv_count; i++) {
        if (options->tlvs[i].type == WEIR_PROXY_CRC32C)
            return weir__options_reject("proxy-header", NULL,
                                        "WEIR_PROXY_CRC32C is not allowed in tlvs: use .checksum");
        if (options->tlvs[i].value.length > UINT16_MAX)
            return -EMSGSIZE;
        length += TLV_HEADER + options->tlvs[i].value.length;
        if (length > UINT16_MAX)
            return -EMSGSIZE;
    }
    *ret_length = length;
    if (options->source != NULL)
        length += weir__proxy_v2_address_length(weir_address_family(options->source));
    if (options->checksum)
        length += TLV_HEADER + 4;
    return length <= UINT16_MAX ? 0 : -EMSGSIZE;
}

static void copy_tlvs(weir_proxy_header *header, const weir_proxy_header_options *options)
{
    uint8_t *to = header->tlvs;

    for (size_t i = 0; i < options->tlv_count; i++) {
        weir_span value = options->tlvs[i].value;

        *to++ = options->tlvs[i].type;
        *to++ = (uint8_t)(value.length >> 8);
        *to++ = (uint8_t)value.length;
        if (value.length > 0)
            memcpy(to, value.data, value.length);
        to += value.length;
    }
}

static int create(const weir_proxy_header_options *options, weir_proxy_header **ret_header)
{
    weir_proxy_header *header;
    size_t length;
    int err = measure_tlvs(options, &length);

    if (err < 0)
        return err;
    header = weir__proxy_header_alloc(length);
    if (header == NULL)
        return -ENOMEM;
    header->version = (uint8_t)options->version;
    header->is_local = options->is_local;
    header->is_datagram = options->is_datagram;
    header->checksum = options->checksum;
    if (options->source != NULL) {
        header->source = *options->source;
        header->destination = *options->destination;
    }
    copy_tlvs(header, options);
    if (!weir__proxy_tlvs_are_valid(weir_proxy_header_tlvs(header))) {
        weir_proxy_header_release(header);
        return weir__options_reject("proxy-header", NULL,
                                    "nested TLVs exceed their WEIR_PROXY_SSL");
    }
    *ret_header = header;
    return 0;
}

int weir_proxy_header_create(const weir_proxy_header_options *options,
                             weir_proxy_header **ret_header)
{
    weir_proxy_header_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    if (own.version == 0)
        own.version = 2;
    err = validate(&own);
    return err < 0 ? err : create(&own, ret_header);
}

/* ---- accessors ---- */

const weir_proxy_header *weir_proxy_header_of(const weir_msg *msg)
{
    return weir_msg_is(msg, &weir_proxy_header_type) ? (const weir_proxy_header *)(const void *)msg
                                                     : NULL;
}

weir_msg *weir_proxy_header_msg(weir_proxy_header *header)
{
    return &header->msg;
}

weir_proxy_header *weir_proxy_header_retain(weir_proxy_header *header)
{
    (void)weir_msg_retain(&header->msg);
    return header;
}

void weir_proxy_header_release(weir_proxy_header *header)
{
    if (header != NULL)
        weir_msg_release(&header->msg);
}

int weir_proxy_header_version(const weir_proxy_header *header)
{
    return header->version;
}

bool weir_proxy_header_is_local(const weir_proxy_header *header)
{
    return header->is_local;
}

bool weir_proxy_header_is_datagram(const weir_proxy_header *header)
{
    return header->is_datagram;
}

const weir_address *weir_proxy_header_source(const weir_proxy_header *header)
{
    return &header->source;
}

const weir_address *weir_proxy_header_destination(const weir_proxy_header *header)
{
    return &header->destination;
}

weir_span weir_proxy_header_tlvs(const weir_proxy_header *header)
{
    return (weir_span){header->tlvs, header->tlv_length};
}

/* ---- TLVs ---- */

/* Removes the first TLV. False if there is none, or if it is truncated. */
static bool next_tlv(weir_span *tlvs, weir_proxy_tlv *ret_tlv)
{
    size_t length;

    if (tlvs->length < TLV_HEADER)
        return false;
    length = (size_t)tlvs->data[1] << 8 | tlvs->data[2];
    if (length > tlvs->length - TLV_HEADER)
        return false;
    ret_tlv->type = tlvs->data[0];
    ret_tlv->value = (weir_span){tlvs->data + TLV_HEADER, length};
    tlvs->data += TLV_HEADER + length;
    tlvs->length -= TLV_HEADER + length;
    return true;
}

bool weir_proxy_tlv_find(weir_span tlvs, uint8_t type, weir_span *ret_value)
{
    weir_proxy_tlv tlv;

    while (next_tlv(&tlvs, &tlv))
        if (tlv.type == type) {
            *ret_value = tlv.value;
            return true;
        }
    return false;
}

static bool is_ssl_valid(weir_span value)
{
    weir_proxy_tlv tlv;

    if (value.length < WEIR_PROXY_SSL_TLVS)
        return false;
    value.data += WEIR_PROXY_SSL_TLVS;
    value.length -= WEIR_PROXY_SSL_TLVS;
    while (next_tlv(&value, &tlv))
        ;
    return value.length == 0;
}

bool weir__proxy_tlvs_are_valid(weir_span tlvs)
{
    weir_proxy_tlv tlv;

    while (next_tlv(&tlvs, &tlv))
        if (tlv.type == WEIR_PROXY_SSL && !is_ssl_valid(tlv.value))
            return false;
    return tlvs.length == 0;
}

/* ---- bytes ---- */

static bool may_start_with(const uint8_t *bytes, size_t length, const char *with,
                           size_t with_length)
{
    return memcmp(bytes, with, length < with_length ? length : with_length) == 0;
}

ssize_t weir__proxy_read(const uint8_t *bytes, size_t length, size_t max,
                         weir_proxy_header **ret_header, size_t *ret_need, const char **ret_detail)
{
    *ret_need = 0;
    if (length == 0)
        return 0;
    if (may_start_with(bytes, length, WEIR__PROXY_V2_SIGNATURE,
                       sizeof(WEIR__PROXY_V2_SIGNATURE) - 1))
        return weir__proxy_v2_read(bytes, length, max, ret_header, ret_need, ret_detail);
    if (may_start_with(bytes, length, WEIR__PROXY_V1_PREFIX, sizeof(WEIR__PROXY_V1_PREFIX) - 1))
        return weir__proxy_v1_read(bytes, length, ret_header, ret_detail);
    *ret_detail = "no PROXY header at the start of the connection";
    return WEIR_EMALFORMED;
}

int weir_proxy_header_write(const weir_proxy_header *header, weir_buf *buf)
{
    return header->version == 1 ? weir__proxy_v1_write(header, buf)
                                : weir__proxy_v2_write(header, buf);
}
