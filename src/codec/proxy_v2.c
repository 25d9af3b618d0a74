/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version 2 of the PROXY protocol:
 *
 *      12          1 byte              1 byte               2        `length` bytes
 *      ----------  ------------------  -------------------  -------  --------------------
 *      signature   2 | LOCAL, PROXY    family | protocol    length   addresses, then TLVs
 *
 * IPv4 and IPv6: source, destination, then both ports. Unix: two paths of 108 bytes. The content of
 * a LOCAL header, and of an unspecified family, is skipped.
 */
#include <errno.h>
#include <string.h>

#include <weir/buf.h>

#include "base/address.h"
#include "base/crc32c.h"
#include "codec/proxy_header.h"

#define LENGTH_IPV4 12
#define LENGTH_IPV6 36
#define PATH_LENGTH 108
#define LENGTH_UNIX (2 * PATH_LENGTH)
#define LENGTH_MAX LENGTH_UNIX
#define MAGIC_LENGTH (sizeof(WEIR__PROXY_V2_SIGNATURE) - 1)
#define CRC_LENGTH 4

enum {
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21,
};

/* The upper and the lower half of the byte after the command. */
enum {
    FAMILY_NONE,
    FAMILY_IPV4,
    FAMILY_IPV6,
    FAMILY_UNIX,
    FAMILY_COUNT,
};

enum {
    PROTOCOL_NONE,
    PROTOCOL_STREAM,
    PROTOCOL_DATAGRAM,
    PROTOCOL_COUNT,
};

static const int families[FAMILY_COUNT] = {AF_UNSPEC, AF_INET, AF_INET6, AF_UNIX};

size_t weir__proxy_v2_address_length(int family)
{
    switch (family) {
    case AF_INET:
        return LENGTH_IPV4;
    case AF_INET6:
        return LENGTH_IPV6;
    case AF_UNIX:
        return LENGTH_UNIX;
    default:
        return 0;
    }
}

static ssize_t reject(int err, const char *detail, const char **ret_detail)
{
    *ret_detail = detail;
    return err;
}

/* ---- addresses ---- */

static uint16_t get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static void put16(uint8_t *bytes, size_t number)
{
    bytes[0] = (uint8_t)(number >> 8);
    bytes[1] = (uint8_t)number;
}

/* A name that starts with a NUL is abstract, and ends before the trailing NULs. */
static weir_address read_unix_path(const uint8_t *name)
{
    size_t length = strnlen((const char *)name, PATH_LENGTH);

    if (length > 0) {
        length += length < PATH_LENGTH; /* its NUL, if there is one */
    } else {
        length = PATH_LENGTH;
        while (length > 0 && name[length - 1] == 0)
            length--;
    }
    return weir__address_of_name(name, length);
}

static void read_addresses(const uint8_t *from, int family, weir_proxy_header *header)
{
    size_t length = family == AF_INET ? 4 : 16; /* of each address; the two ports follow them */

    if (family == AF_INET || family == AF_INET6) {
        const uint8_t *ports = from + 2 * length;

        header->source = weir__address_of_host(family, from, get16(ports));
        header->destination = weir__address_of_host(family, from + length, get16(ports + 2));
    } else if (family == AF_UNIX) {
        header->source = read_unix_path(from);
        header->destination = read_unix_path(from + PATH_LENGTH);
    }
}

static void write_hosts(const weir_proxy_header *header, uint8_t *to)
{
    size_t length;
    const uint8_t *host = weir__address_host(&header->source, &length);

    memcpy(to, host, length);
    host = weir__address_host(&header->destination, &length);
    memcpy(to + length, host, length);
    put16(to + 2 * length, weir_address_port(&header->source));
    put16(to + 2 * length + 2, weir_address_port(&header->destination));
}

static void write_unix_path(const weir_address *address, uint8_t to[PATH_LENGTH])
{
    size_t length;
    const uint8_t *name = weir__address_name(address, &length);

    memcpy(to, name, length);
}

/* `to` is zeroed. */
static void write_addresses(const weir_proxy_header *header, uint8_t to[LENGTH_MAX])
{
    switch (weir_address_family(&header->source)) {
    case AF_INET:
    case AF_INET6:
        write_hosts(header, to);
        break;
    case AF_UNIX:
        write_unix_path(&header->source, to);
        write_unix_path(&header->destination, to + PATH_LENGTH);
        break;
    default:
        break;
    }
}

/* ---- reading ---- */

/* The checksum covers the whole header, with the checksum itself as zeroes. */
static bool checksum_matches(weir_span header, weir_span checksum)
{
    static const uint8_t zeroes[CRC_LENGTH];
    size_t before = (size_t)(checksum.data - header.data);
    uint32_t crc, received;

    if (checksum.length != CRC_LENGTH)
        return false;
    crc = weir__crc32c(0, header.data, before);
    crc = weir__crc32c(crc, zeroes, CRC_LENGTH);
    crc = weir__crc32c(crc, checksum.data + CRC_LENGTH, header.length - before - CRC_LENGTH);
    received = (uint32_t)checksum.data[0] << 24 | (uint32_t)checksum.data[1] << 16 |
               (uint32_t)checksum.data[2] << 8 | checksum.data[3];
    return crc == received;
}

static ssize_t read_proxied(weir_span bytes, weir_proxy_header **ret_header,
                            const char **ret_detail)
{
    int family = families[bytes.data[13] >> 4];
    size_t fixed = WEIR__PROXY_V2_FIXED + weir__proxy_v2_address_length(family);
    weir_proxy_header *header;
    weir_span tlvs, checksum;

    if (bytes.length < fixed)
        return reject(WEIR_EMALFORMED, "PROXY header too short for its addresses", ret_detail);
    tlvs = (weir_span){bytes.data + fixed, family == AF_UNSPEC ? 0 : bytes.length - fixed};
    if (!weir__proxy_tlvs_are_valid(tlvs))
        return reject(WEIR_EMALFORMED, "TLV exceeds the PROXY header", ret_detail);
    if (weir_proxy_tlv_find(tlvs, WEIR_PROXY_CRC32C, &checksum) &&
        !checksum_matches(bytes, checksum))
        return reject(WEIR_EMALFORMED, "wrong checksum of the PROXY header", ret_detail);
    header = weir__proxy_header_alloc(tlvs.length);
    if (header == NULL)
        return -ENOMEM;
    header->is_datagram = (bytes.data[13] & 15) == PROTOCOL_DATAGRAM;
    read_addresses(bytes.data + WEIR__PROXY_V2_FIXED, family, header);
    if (tlvs.length > 0)
        memcpy(header->tlvs, tlvs.data, tlvs.length);
    *ret_header = header;
    return (ssize_t)bytes.length;
}

static ssize_t read_local(weir_span bytes, weir_proxy_header **ret_header)
{
    weir_proxy_header *header = weir__proxy_header_alloc(0);

    if (header == NULL)
        return -ENOMEM;
    header->is_local = true;
    *ret_header = header;
    return (ssize_t)bytes.length;
}

/* Reports an invalid byte as soon as it arrives. */
static const char *find_fault(const uint8_t *bytes, size_t length)
{
    if (length > 12 && bytes[12] >> 4 != 2)
        return "unknown version of the PROXY header";
    if (length > 12 && bytes[12] != COMMAND_LOCAL && bytes[12] != COMMAND_PROXY)
        return "unknown command of the PROXY header";
    if (length > 13 && bytes[12] == COMMAND_PROXY &&
        (bytes[13] >> 4 >= FAMILY_COUNT || (bytes[13] & 15) >= PROTOCOL_COUNT))
        return "unknown address family of the PROXY header";
    return NULL;
}

ssize_t weir__proxy_v2_read(const uint8_t *bytes, size_t length, size_t max,
                            weir_proxy_header **ret_header, size_t *ret_need,
                            const char **ret_detail)
{
    const char *fault = find_fault(bytes, length);
    ssize_t taken;
    size_t whole;

    if (fault != NULL)
        return reject(WEIR_EMALFORMED, fault, ret_detail);
    if (length < WEIR__PROXY_V2_FIXED)
        return 0; /* *ret_need stays 0: each further byte is checked at once */
    whole = WEIR__PROXY_V2_FIXED + get16(bytes + 14);
    if (whole > max)
        return reject(WEIR_ETOOLONG, "PROXY header over the limit", ret_detail);
    if (length < whole) {
        *ret_need = whole;
        return 0;
    }
    if (bytes[12] == COMMAND_LOCAL)
        taken = read_local((weir_span){bytes, whole}, ret_header);
    else
        taken = read_proxied((weir_span){bytes, whole}, ret_header, ret_detail);
    if (taken > 0)
        (*ret_header)->version = 2;
    return taken;
}

/* ---- writing ---- */

static uint8_t family_byte(const weir_proxy_header *header)
{
    int family = weir_address_family(&header->source);
    uint8_t kind = header->is_datagram ? PROTOCOL_DATAGRAM : PROTOCOL_STREAM;

    for (uint8_t i = FAMILY_IPV4; i < FAMILY_COUNT; i++)
        if (families[i] == family)
            return (uint8_t)(i << 4 | kind);
    return FAMILY_NONE << 4 | PROTOCOL_NONE;
}

/* The checksum is the last TLV; it is computed with its own value as zeroes. */
static void append_checksum(uint8_t *begin, uint8_t *tlv)
{
    uint32_t crc;

    memcpy(tlv, "\x03\x00\x04\x00\x00\x00", 7);
    crc = weir__crc32c(0, begin, (size_t)(tlv - begin) + 3 + CRC_LENGTH);
    for (int i = 0; i < CRC_LENGTH; i++)
        tlv[3 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

int weir__proxy_v2_write(const weir_proxy_header *header, weir_buf *buf)
{
    size_t addresses = weir__proxy_v2_address_length(weir_address_family(&header->source));
    size_t rest = addresses + header->tlv_length + (header->checksum ? 3 + CRC_LENGTH : 0);
    uint8_t *to;
    int err = weir_buf_reserve(buf, WEIR__PROXY_V2_FIXED + rest);

    if (err < 0)
        return err;
    to = weir_buf_space(buf);
    memset(to, 0, WEIR__PROXY_V2_FIXED + addresses);
    memcpy(to, WEIR__PROXY_V2_SIGNATURE, MAGIC_LENGTH);
    to[12] = header->is_local ? COMMAND_LOCAL : COMMAND_PROXY;
    to[13] = family_byte(header);
    put16(to + 14, rest);
    write_addresses(header, to + WEIR__PROXY_V2_FIXED);
    memcpy(to + WEIR__PROXY_V2_FIXED + addresses, header->tlvs, header->tlv_length);
    if (header->checksum)
        append_checksum(to, to + WEIR__PROXY_V2_FIXED + addresses + header->tlv_length);
    return weir_buf_advance(buf, WEIR__PROXY_V2_FIXED + rest);
}
