/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the hello of a TLS client (RFC 8446 4.1.2, RFC 5246 7.4.1.2) from untrusted bytes. First
 * the records are scanned until the hello is complete, then it is read as a whole:
 *
 *      1        3       2        32      1 + n    2 + n   1 + n        2 + extensions
 *      -------  ------  -------  ------  -------  ------  -----------  -----------------------
 *      "hello"  length  version  random  session  suites  compression  type (2), length (2), n
 *
 * A server that we pass the hello on to must not read another name in it: anything ambiguous (a
 * length that does not fit, two names, trailing bytes) is an error.
 */
#include "tls/tls_hello.h"

#include <weir/error.h>

#include "tls/hello_reader.h"

#define RECORD_HANDSHAKE 22
#define RECORD_MAJOR 3
#define RECORD_MAX 16384
#define HANDSHAKE_HEADER 4
#define HANDSHAKE_CLIENT_HELLO 1
#define VERSION_SSL3 0x0300
#define VERSION_TLS12 0x0303
#define RANDOM_LENGTH 32
#define SESSION_MAX 32
#define NAME_IS_HOST 0

enum extension {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_VERSIONS = 43,
};

/* ---- the name ---- */

/* Includes ":": some clients send addresses. */
static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == ':';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Converts it to lower case and removes a final dot. False if it is invalid. */
static bool normalize_name(char *name, size_t length)
{
    char before = '.';

    if (length > 1 && name[length - 1] == '.')
        length--;
    for (size_t i = 0; i < length; i++) {
        name[i] = lower(name[i]);
        if (name[i] == '.' ? before == '.' : !is_name_char(name[i]))
            return false;
        before = name[i];
    }
    name[length] = '\0';
    return before != '.';
}

/* The list could hold names of other types, but none was ever defined. */
static const char *read_server_name(weir__hello_reader extension,
                                    char ret_name[WEIR__TLS_NAME_SIZE])
{
    char name[WEIR__TLS_NAME_SIZE] = "";
    weir__hello_reader list, text;
    uint32_t kind;
    size_t length;

    if (!weir__hello_reader_block(&extension, 2, &list) || extension.left > 0 ||
        !weir__hello_reader_number(&list, 1, &kind) || kind != NAME_IS_HOST ||
        !weir__hello_reader_block(&list, 2, &text) || list.left > 0)
        return "the hello does not have exactly one server name";
    length = text.left;
    if (length == 0 || length >= sizeof(name))
        return "the hello's server name is empty or too long";
    (void)weir__hello_reader_bytes(&text, name, length);
    if (!normalize_name(name, length))
        return "the hello's server name is invalid";
    memcpy(ret_name, name, sizeof(name));
    return NULL;
}

/* ---- protocols ---- */

/* Unprintable protocols are left out: they are random values that clients add (GREASE). */
static bool is_printable(const char *protocol, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (protocol[i] <= ' ' || protocol[i] > '~' || protocol[i] == ',')
            return false;
    return true;
}

/* False if there is no room for it. */
static bool append_protocol(char *alpn, const char *protocol, size_t length)
{
    size_t used = strlen(alpn), comma = used > 0;

    if (used + comma + length >= WEIR__TLS_NAME_SIZE)
        return false;
    if (comma)
        alpn[used] = ',';
    memcpy(alpn + used + comma, protocol, length);
    alpn[used + comma + length] = '\0';
    return true;
}

static const char *read_alpn(weir__hello_reader extension, char ret_alpn[WEIR__TLS_NAME_SIZE])
{
    static const char fault[] = "malformed protocol list in the hello";
    weir__hello_reader list, text;
    bool has_room = true;

    if (!weir__hello_reader_block(&extension, 2, &list) || extension.left > 0 || list.left == 0)
        return fault;
    ret_alpn[0] = '\0';
    while (list.left > 0) {
        char protocol[255];
        size_t length;

        if (!weir__hello_reader_block(&list, 1, &text) || text.left == 0)
            return fault;
        length = text.left;
        (void)weir__hello_reader_bytes(&text, protocol, length);
        if (has_room && is_printable(protocol, length))
            has_room = append_protocol(ret_alpn, protocol, length);
    }
    return NULL;
}

const char *weir__tls_hello_server_name(weir_span extension, char ret_name[WEIR__TLS_NAME_SIZE])
{
    return read_server_name(weir__hello_reader_of_span(extension), ret_name);
}

const char *weir__tls_hello_alpn(weir_span extension, char ret_alpn[WEIR__TLS_NAME_SIZE])
{
    return read_alpn(weir__hello_reader_of_span(extension), ret_alpn);
}

/* ---- versions ---- */

/* The highest known version: clients also offer random ones (GREASE). */
static const char *read_versions(weir__hello_reader extension, uint16_t *ret_version)
{
    weir__hello_reader list;
    uint32_t version;

    if (!weir__hello_reader_block(&extension, 1, &list) || extension.left > 0 || list.left == 0 ||
        list.left % 2 != 0)
        return "malformed version list in the hello";
    *ret_version = 0;
    while (weir__hello_reader_number(&list, 2, &version))
        if (version >> 8 == RECORD_MAJOR && version > *ret_version)
            *ret_version = (uint16_t)version;
    return NULL;
}

/* ---- the whole ---- */

static const char *read_extension(uint32_t type, weir__hello_reader extension,
                                  weir_tls_hello *hello, uint32_t *seen)
{
    uint32_t bit;

    if (type != EXTENSION_SERVER_NAME && type != EXTENSION_ALPN && type != EXTENSION_VERSIONS)
        return NULL;
    bit = type == EXTENSION_SERVER_NAME ? 1 : type == EXTENSION_ALPN ? 2 : 4;
    if ((*seen & bit) != 0)
        return "duplicate extension in the hello";
    *seen |= bit;
    if (type == EXTENSION_SERVER_NAME)
        return read_server_name(extension, hello->server_name);
    if (type == EXTENSION_ALPN)
        return read_alpn(extension, hello->alpn);
    return read_versions(extension, &hello->version);
}

static const char *read_extensions(weir__hello_reader *body, weir_tls_hello *hello)
{
    weir__hello_reader list, extension;
    uint32_t type, seen = 0;
    const char *fault = NULL;

    if (body->left == 0)
        return NULL; /* old clients have none */
    if (!weir__hello_reader_block(body, 2, &list) || body->left > 0)
        return "the length of the hello's extensions is wrong";
    while (fault == NULL && list.left > 0) {
        if (!weir__hello_reader_number(&list, 2, &type) ||
            !weir__hello_reader_block(&list, 2, &extension))
            return "an extension is longer than the hello";
        fault = read_extension(type, extension, hello, &seen);
    }
    return fault;
}

static const char *read_body(weir__hello_reader body, weir_tls_hello *hello)
{
    weir__hello_reader session, suites, compressions;
    uint32_t version;

    if (!weir__hello_reader_number(&body, 2, &version) ||
        !weir__hello_reader_bytes(&body, NULL, RANDOM_LENGTH) ||
        !weir__hello_reader_block(&body, 1, &session) ||
        !weir__hello_reader_block(&body, 2, &suites) ||
        !weir__hello_reader_block(&body, 1, &compressions))
        return "the hello is too short";
    if (version < VERSION_SSL3)
        return "the version of the hello is older than SSL 3";
    if (session.left > SESSION_MAX || suites.left == 0 || suites.left % 2 != 0 ||
        compressions.left == 0)
        return "a list in the hello has an invalid length";
    hello->version = (uint16_t)(version < VERSION_TLS12 ? version : VERSION_TLS12);
    return read_extensions(&body, hello);
}

/* ---- records ---- */

static int fail(int err, const char *fault, const char **ret_fault)
{
    *ret_fault = fault;
    return err;
}

static const char *describe(uint8_t first)
{
    if (first >= 'A' && first <= 'z')
        return "not TLS: this looks like text, such as an HTTP request";
    if ((first & 0x80) != 0)
        return "not TLS: this may be SSL 2";
    return "not TLS";
}

/* Checks a possibly incomplete record header: 1 if it is complete, 0 if it is not. */
static int check_header(weir_span header, bool is_first, const char **ret_fault)
{
    size_t length;

    if (header.length > 0 && header.data[0] != RECORD_HANDSHAKE)
        return is_first
                   ? fail(WEIR_ENOTTLS, describe(header.data[0]), ret_fault)
                   : fail(WEIR_EMALFORMED, "a record of another type within the hello", ret_fault);
    if (header.length > 1 && header.data[1] != RECORD_MAJOR)
        return is_first ? fail(WEIR_ENOTTLS, "not TLS", ret_fault)
                        : fail(WEIR_EMALFORMED, "a record of an unknown version", ret_fault);
    if (header.length < WEIR__TLS_RECORD_HEADER)
        return 0;
    length = (size_t)header.data[3] << 8 | header.data[4];
    if (length == 0 || length > RECORD_MAX)
        return fail(WEIR_EMALFORMED, "a record of the hello is empty or too long", ret_fault);
    return 1;
}

/* Adds the part of the hello in a record. The first bytes of the hello are its type and length. */
static int add_part(weir__tls_hello_scan *scan, weir_span part, const char **ret_fault)
{
    size_t missing = scan->length < HANDSHAKE_HEADER ? HANDSHAKE_HEADER - scan->length : 0;

    if (missing > 0)
        memcpy(scan->head + scan->length, part.data, missing < part.length ? missing : part.length);
    scan->end += WEIR__TLS_RECORD_HEADER + part.length;
    scan->length += part.length;
    if (scan->head[0] != HANDSHAKE_CLIENT_HELLO)
        return fail(WEIR_ENOTTLS, "this is TLS, but not a client hello", ret_fault);
    if (scan->length < HANDSHAKE_HEADER)
        return 1;
    scan->whole = HANDSHAKE_HEADER +
                  ((size_t)scan->head[1] << 16 | (size_t)scan->head[2] << 8 | scan->head[3]);
    if (scan->end + scan->whole > WEIR_TLS_HELLO_MAX + scan->length) /* the missing part */
        return fail(WEIR_ETOOLONG, "the hello is too long", ret_fault);
    return 1;
}

/* 1 = another record was scanned. 0 = it is not complete. */
static int next_record(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                       const char **ret_fault)
{
    weir_span rest = {bytes.data + scan->end, bytes.length - scan->end};
    int result = check_header(rest, scan->end == 0, ret_fault);

    *ret_need = bytes.length + 1;
    if (result <= 0)
        return result;
    rest.length = (size_t)rest.data[3] << 8 | rest.data[4];
    rest.data += WEIR__TLS_RECORD_HEADER;
    *ret_need = scan->end + WEIR__TLS_RECORD_HEADER + rest.length;
    if (*ret_need > WEIR_TLS_HELLO_MAX)
        return fail(WEIR_ETOOLONG, "the hello is too long", ret_fault);
    return *ret_need <= bytes.length ? add_part(scan, rest, ret_fault) : 0;
}

int weir__tls_hello_scan_records(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                                 const char **ret_fault)
{
    int result = bytes.length > 0;

    *ret_need = 1;
    while (result > 0 && (scan->whole == 0 || scan->length < scan->whole))
        result = next_record(scan, bytes, ret_need, ret_fault);
    return result;
}

int weir__tls_hello_scan_read(weir__tls_hello_scan *scan, weir_span bytes,
                              weir_tls_hello *ret_hello, size_t *ret_need, const char **ret_fault)
{
    weir_tls_hello hello = {0};
    weir__hello_reader reader;
    int result = weir__tls_hello_scan_records(scan, bytes, ret_need, ret_fault);

    if (result <= 0)
        return result;
    if (scan->length > scan->whole)
        return fail(WEIR_EMALFORMED, "the record of the hello contains more", ret_fault);
    reader = weir__hello_reader_of_records(bytes.data, scan->whole);
    (void)weir__hello_reader_bytes(&reader, NULL, HANDSHAKE_HEADER);
    *ret_fault = read_body(reader, &hello);
    if (*ret_fault != NULL)
        return WEIR_EMALFORMED;
    *ret_hello = hello;
    return 1;
}

int weir_tls_hello_read(weir_span bytes, weir_tls_hello *ret_hello)
{
    weir__tls_hello_scan scan = {0};
    const char *fault;
    size_t need;

    return weir__tls_hello_scan_read(&scan, bytes, ret_hello, &need, &fault);
}
