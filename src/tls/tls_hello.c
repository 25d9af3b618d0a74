/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hello of a TLS client (RFC 8446 4.1.2, RFC 5246 7.4.1.2), read by ourselves: from bytes that
 * anybody may have sent. First the records are looked at until the hello is complete, then it is
 * read as a whole:
 *
 *      1        3       2        32      1 + n    2 + n   1 + n        2 + extensions
 *      -------  ------  -------  ------  -------  ------  -----------  -----------------------
 *      "hello"  length  version  random  session  suites  compression  type (2), length (2), n
 *
 * Whoever gets the hello from us must not read another name in it: what is doubtful (a length that
 * does not fit, two names, bytes behind the end) is an error.
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

/* Addresses are no names, and yet some clients send them. */
static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == ':';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Makes lower case of it, without the dot at its end. */
static bool clean_name(char *name, size_t length)
{
    char before = '.';

    if (length > 1 && name[length - 1] == '.')
        length--;
    for (size_t i = 0; i < length; i++) {
        name[i] = lower(name[i]);
        if (name[i] == '.' ? before == '.' : !is_of_name(name[i]))
            return false;
        before = name[i];
    }
    name[length] = '\0';
    return before != '.';
}

/* There may be names of other kinds in theory; nobody has ever said what they look like. */
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
        return "the hello's server name is not one name";
    length = text.left;
    if (length == 0 || length >= sizeof(name))
        return "the hello's server name is empty or too long";
    (void)weir__hello_reader_bytes(&text, name, length);
    if (!clean_name(name, length))
        return "the hello's server name has what no name has";
    memcpy(ret_name, name, sizeof(name));
    return NULL;
}

/* ---- protocols ---- */

/* What cannot be told in words is left out: nobody speaks it, clients make such ones up. */
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
    size_t there = strlen(alpn), comma = there > 0;

    if (there + comma + length >= WEIR__TLS_NAME_SIZE)
        return false;
    if (comma)
        alpn[there] = ',';
    memcpy(alpn + there + comma, protocol, length);
    alpn[there + comma + length] = '\0';
    return true;
}

static const char *read_alpn(weir__hello_reader extension, char ret_alpn[WEIR__TLS_NAME_SIZE])
{
    static const char fault[] = "the hello's list of protocols makes no sense";
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

/* The highest of those that exist: clients also offer some that never will. */
static const char *read_versions(weir__hello_reader extension, uint16_t *ret_version)
{
    weir__hello_reader list;
    uint32_t version;

    if (!weir__hello_reader_block(&extension, 1, &list) || extension.left > 0 || list.left == 0 ||
        list.left % 2 != 0)
        return "the hello's list of versions makes no sense";
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
        return "an extension comes twice in the hello";
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
    const char *why = NULL;

    if (body->left == 0)
        return NULL; /* clients of old have none */
    if (!weir__hello_reader_block(body, 2, &list) || body->left > 0)
        return "the hello's extensions do not end where it does";
    while (why == NULL && list.left > 0) {
        if (!weir__hello_reader_number(&list, 2, &type) ||
            !weir__hello_reader_block(&list, 2, &extension))
            return "an extension is longer than the hello";
        why = read_extension(type, extension, hello, &seen);
    }
    return why;
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
        return "the hello is of a version before SSL 3";
    if (session.left > SESSION_MAX || suites.left == 0 || suites.left % 2 != 0 ||
        compressions.left == 0)
        return "a list in the hello has an impossible length";
    hello->version = (uint16_t)(version < VERSION_TLS12 ? version : VERSION_TLS12);
    return read_extensions(&body, hello);
}

/* ---- records ---- */

static int refuse(int err, const char *why, const char **ret_why)
{
    *ret_why = why;
    return err;
}

static const char *what_else(uint8_t first)
{
    if (first >= 'A' && first <= 'z')
        return "this is not TLS: it looks like text, such as a request of HTTP";
    if ((first & 0x80) != 0)
        return "this is not TLS: it may be SSL 2";
    return "this is not TLS";
}

/* The header of a record, as soon as the byte that is wrong has come: 1 if it is complete. */
static int check_header(weir_span header, bool is_first, const char **ret_why)
{
    size_t length;

    if (header.length > 0 && header.data[0] != RECORD_HANDSHAKE)
        return is_first ? refuse(WEIR_ENOTTLS, what_else(header.data[0]), ret_why)
                        : refuse(WEIR_EMALFORMED, "something else comes in the middle of the hello",
                                 ret_why);
    if (header.length > 1 && header.data[1] != RECORD_MAJOR)
        return is_first ? refuse(WEIR_ENOTTLS, "this is not TLS", ret_why)
                        : refuse(WEIR_EMALFORMED, "a record of an unknown version", ret_why);
    if (header.length < WEIR__TLS_RECORD_HEADER)
        return 0;
    length = (size_t)header.data[3] << 8 | header.data[4];
    if (length == 0 || length > RECORD_MAX)
        return refuse(WEIR_EMALFORMED, "a record of the hello is empty or too long", ret_why);
    return 1;
}

/* What a record has of the hello. Its first bytes say what it is, and how long. */
static int take_part(weir__tls_hello_scan *scan, weir_span part, const char **ret_why)
{
    size_t missing = scan->length < HANDSHAKE_HEADER ? HANDSHAKE_HEADER - scan->length : 0;

    if (missing > 0)
        memcpy(scan->head + scan->length, part.data, missing < part.length ? missing : part.length);
    scan->end += WEIR__TLS_RECORD_HEADER + part.length;
    scan->length += part.length;
    if (scan->head[0] != HANDSHAKE_CLIENT_HELLO)
        return refuse(WEIR_ENOTTLS, "this is TLS, but not the hello of a client", ret_why);
    if (scan->length < HANDSHAKE_HEADER)
        return 1;
    scan->whole = HANDSHAKE_HEADER +
                  ((size_t)scan->head[1] << 16 | (size_t)scan->head[2] << 8 | scan->head[3]);
    if (scan->end + scan->whole > WEIR_TLS_HELLO_MAX + scan->length) /* what is missing of it */
        return refuse(WEIR_ETOOLONG, "the hello is too long", ret_why);
    return 1;
}

/* 1: a record more has been seen. 0: it is not complete. */
static int next_record(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                       const char **ret_why)
{
    weir_span rest = {bytes.data + scan->end, bytes.length - scan->end};
    int result = check_header(rest, scan->end == 0, ret_why);

    *ret_need = bytes.length + 1;
    if (result <= 0)
        return result;
    rest.length = (size_t)rest.data[3] << 8 | rest.data[4];
    rest.data += WEIR__TLS_RECORD_HEADER;
    *ret_need = scan->end + WEIR__TLS_RECORD_HEADER + rest.length;
    if (*ret_need > WEIR_TLS_HELLO_MAX)
        return refuse(WEIR_ETOOLONG, "the hello is too long", ret_why);
    return *ret_need <= bytes.length ? take_part(scan, rest, ret_why) : 0;
}

int weir__tls_hello_scan_records(weir__tls_hello_scan *scan, weir_span bytes, size_t *ret_need,
                                 const char **ret_why)
{
    int result = bytes.length > 0;

    *ret_need = 1;
    while (result > 0 && (scan->whole == 0 || scan->length < scan->whole))
        result = next_record(scan, bytes, ret_need, ret_why);
    return result;
}

int weir__tls_hello_scan_read(weir__tls_hello_scan *scan, weir_span bytes,
                              weir_tls_hello *ret_hello, size_t *ret_need, const char **ret_why)
{
    weir_tls_hello hello = {0};
    weir__hello_reader reader;
    int result = weir__tls_hello_scan_records(scan, bytes, ret_need, ret_why);

    if (result <= 0)
        return result;
    if (scan->length > scan->whole)
        return refuse(WEIR_EMALFORMED, "there is more in a record than the hello", ret_why);
    reader = weir__hello_reader_of_records(bytes.data, scan->whole);
    (void)weir__hello_reader_bytes(&reader, NULL, HANDSHAKE_HEADER);
    *ret_why = read_body(reader, &hello);
    if (*ret_why != NULL)
        return WEIR_EMALFORMED;
    *ret_hello = hello;
    return 1;
}

int weir_tls_hello_read(weir_span bytes, weir_tls_hello *ret_hello)
{
    weir__tls_hello_scan scan = {0};
    const char *why;
    size_t need;

    return weir__tls_hello_scan_read(&scan, bytes, ret_hello, &need, &why);
}
