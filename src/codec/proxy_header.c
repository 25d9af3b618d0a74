/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/proxy_header.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"

#define FIELD_HEAD 3 /* a type, and a length of two bytes */

static void destroy(weir_msg *msg)
{
    weir__free(msg);
}

const weir_msg_type weir_proxy_header_type = {.name = "proxy-header", .destroy = destroy};

weir_proxy_header *weir__proxy_header_alloc(size_t field_length)
{
    weir_proxy_header *header = weir__zalloc(sizeof(*header) + field_length);

    if (header != NULL) {
        weir_msg_init(&header->msg, &weir_proxy_header_type);
        header->field_length = field_length;
    }
    return header;
}

/* ---- making one ---- */

static bool is_proxied_family(int family)
{
    return family == AF_INET || family == AF_INET6 || family == AF_UNIX;
}

static bool addresses_match(const weir_proxy_header_options *options)
{
    if (options->source == NULL || options->destination == NULL)
        return options->source == options->destination;
    return !options->is_local && is_proxied_family(weir_address_family(options->source)) &&
           weir_address_family(options->source) == weir_address_family(options->destination);
}

static int validate(const weir_proxy_header_options *options)
{
    bool has_more = options->field_count > 0 || options->checksum;

    if (!addresses_match(options))
        return weir__options_reject("proxy-header", NULL,
                                    "source and destination are of one family, or there are none");
    if (options->version == 1 &&
        (has_more || options->datagrams || options->is_local ||
         (options->source != NULL && weir_address_family(options->source) == AF_UNIX)))
        return weir__options_reject("proxy-header", NULL,
                                    "version 1 has two addresses of TCP, and nothing else");
    if (options->source == NULL && has_more)
        return weir__options_reject("proxy-header", NULL,
                                    "without addresses there are no fields, and no checksum");
    return weir__options_check("proxy-header", NULL, WEIR__OPTION(options, version, 1, 2));
}

static int measure_fields(const weir_proxy_header_options *options, size_t *ret_length)
{
    size_t length = 0;

    for (size_t i = 0; i < options->field_count; i++) {
        if (options->fields[i].type == WEIR_PROXY_CRC32C)
            return weir__options_reject("proxy-header", NULL,
                                        "the checksum is no field to be given: see `checksum`");
        if (options->fields[i].value.length > UINT16_MAX)
            return -EMSGSIZE;
        length += FIELD_HEAD + options->fields[i].value.length;
        if (length > UINT16_MAX)
            return -EMSGSIZE;
    }
    *ret_length = length;
    if (options->source != NULL)
        length += weir__proxy_v2_address_length(weir_address_family(options->source));
    if (options->checksum)
        length += FIELD_HEAD + 4;
    return length <= UINT16_MAX ? 0 : -EMSGSIZE;
}

static void copy_fields(weir_proxy_header *header, const weir_proxy_header_options *options)
{
    uint8_t *to = header->fields;

    for (size_t i = 0; i < options->field_count; i++) {
        weir_span value = options->fields[i].value;

        *to++ = options->fields[i].type;
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
    int err = measure_fields(options, &length);

    if (err < 0)
        return err;
    header = weir__proxy_header_alloc(length);
    if (header == NULL)
        return -ENOMEM;
    header->version = (uint8_t)options->version;
    header->is_local = options->is_local;
    header->datagrams = options->datagrams;
    header->checksum = options->checksum;
    if (options->source != NULL) {
        header->source = *options->source;
        header->destination = *options->destination;
    }
    copy_fields(header, options);
    if (!weir__proxy_fields_are_sound(weir_proxy_header_fields(header))) {
        weir_proxy_header_release(header);
        return weir__options_reject("proxy-header", NULL,
                                    "the fields inside a field are longer than it");
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

/* ---- looking at one ---- */

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

bool weir_proxy_header_datagrams(const weir_proxy_header *header)
{
    return header->datagrams;
}

const weir_address *weir_proxy_header_source(const weir_proxy_header *header)
{
    return &header->source;
}

const weir_address *weir_proxy_header_destination(const weir_proxy_header *header)
{
    return &header->destination;
}

weir_span weir_proxy_header_fields(const weir_proxy_header *header)
{
    return (weir_span){header->fields, header->field_length};
}

/* ---- fields ---- */

/* Takes the first one off. False if there is none, or it is longer than what there is. */
static bool next_field(weir_span *fields, weir_proxy_field *ret_field)
{
    size_t length;

    if (fields->length < FIELD_HEAD)
        return false;
    length = (size_t)fields->data[1] << 8 | fields->data[2];
    if (length > fields->length - FIELD_HEAD)
        return false;
    ret_field->type = fields->data[0];
    ret_field->value = (weir_span){fields->data + FIELD_HEAD, length};
    fields->data += FIELD_HEAD + length;
    fields->length -= FIELD_HEAD + length;
    return true;
}

bool weir_proxy_field_find(weir_span fields, uint8_t type, weir_span *ret_value)
{
    weir_proxy_field field;

    while (next_field(&fields, &field))
        if (field.type == type) {
            *ret_value = field.value;
            return true;
        }
    return false;
}

static bool has_ssl_sound(weir_span value)
{
    weir_proxy_field field;

    if (value.length < WEIR_PROXY_SSL_FIELDS)
        return false;
    value.data += WEIR_PROXY_SSL_FIELDS;
    value.length -= WEIR_PROXY_SSL_FIELDS;
    while (next_field(&value, &field))
        ;
    return value.length == 0;
}

bool weir__proxy_fields_are_sound(weir_span fields)
{
    weir_proxy_field field;

    while (next_field(&fields, &field))
        if (field.type == WEIR_PROXY_SSL && !has_ssl_sound(field.value))
            return false;
    return fields.length == 0;
}

/* ---- bytes ---- */

static bool may_begin(const uint8_t *bytes, size_t length, const char *with, size_t with_length)
{
    return memcmp(bytes, with, length < with_length ? length : with_length) == 0;
}

ssize_t weir__proxy_read(const uint8_t *bytes, size_t length, size_t max,
                         weir_proxy_header **ret_header, size_t *ret_need, const char **ret_why)
{
    *ret_need = 0;
    if (length == 0)
        return 0;
    if (may_begin(bytes, length, WEIR__PROXY_V2_SIGNATURE, sizeof(WEIR__PROXY_V2_SIGNATURE) - 1))
        return weir__proxy_v2_read(bytes, length, max, ret_header, ret_need, ret_why);
    if (may_begin(bytes, length, WEIR__PROXY_V1_PREFIX, sizeof(WEIR__PROXY_V1_PREFIX) - 1))
        return weir__proxy_v1_read(bytes, length, ret_header, ret_why);
    *ret_why = "the connection does not begin with a PROXY header";
    return WEIR_EMALFORMED;
}

int weir_proxy_header_write(const weir_proxy_header *header, weir_buf *buf)
{
    return header->version == 1 ? weir__proxy_v1_write(header, buf)
                                : weir__proxy_v2_write(header, buf);
}
