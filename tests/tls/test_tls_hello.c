/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hello of a client, made by OpenSSL or by ourselves: complete or not, true or lying. What
 * OpenSSL reads in it, we do.
 */
#include <weir/tls.h>

#include <stdlib.h>
#include <string.h>

#include <openssl/ssl.h>
#include <weir/error.h>

#include "support/property.h"
#include "support/tls/client_hello.h"

static int read_wire(const struct hello_wire *wire, weir_tls_hello *ret_hello)
{
    return weir_tls_hello_read(weir_span_of(wire->bytes, wire->length), ret_hello);
}

static int read_extensions(const struct hello_wire *extensions, weir_tls_hello *ret_hello)
{
    struct hello_wire wire;

    hello_make(&wire, extensions, 16384);
    return read_wire(&wire, ret_hello);
}

static int read_name(const void *name, size_t length, weir_tls_hello *ret_hello)
{
    struct hello_wire extensions = {.length = 0};

    hello_put_name(&extensions, name, length);
    return read_extensions(&extensions, ret_hello);
}

TEST(tls_hello, of_openssl_is_read)
{
    struct hello_wire wire;
    weir_tls_hello hello;

    hello_make_openssl(&wire, "Www.Example.COM", "\x02h2\x08http/1.1", TLS1_3_VERSION);
    assert_int_equal(read_wire(&wire, &hello), 1);
    assert_string_equal(hello.server_name, "www.example.com");
    assert_string_equal(hello.alpn, "h2,http/1.1");
    assert_int_equal(hello.version, 0x0304);

    hello_make_openssl(&wire, NULL, "", TLS1_2_VERSION);
    assert_int_equal(read_wire(&wire, &hello), 1);
    assert_string_equal(hello.server_name, "");
    assert_string_equal(hello.alpn, "");
    assert_int_equal(hello.version, 0x0303);
}

TEST(tls_hello, is_not_complete_before_its_last_byte)
{
    struct hello_wire wire;
    weir_tls_hello hello;

    hello_make_openssl(&wire, "example.com", "\x02h2", TLS1_3_VERSION);
    for (size_t length = 0; length < wire.length; length++)
        assert_int_equal(weir_tls_hello_read(weir_span_of(wire.bytes, length), &hello), 0);
    hello_put(&wire, "\x14\x03\x03\x00\x01\x01", 6); /* what follows is nothing to us */
    assert_int_equal(read_wire(&wire, &hello), 1);
}

TEST(tls_hello, may_lie_in_records_of_any_size)
{
    struct hello_wire whole, wire;
    weir_tls_hello hello;

    hello_make_openssl(&whole, "example.com", "\x02h2", TLS1_3_VERSION);
    for (size_t record = 1; record < whole.length; record++) {
        wire.length = 0;
        hello_put_records(&wire, whole.bytes + 5, whole.length - 5, record);
        assert_int_equal(read_wire(&wire, &hello), 1);
        assert_string_equal(hello.server_name, "example.com");
        assert_string_equal(hello.alpn, "h2");
        wire.length--;
        assert_int_equal(read_wire(&wire, &hello), 0);
    }
}

/* ---- names ---- */

TEST(tls_hello, has_a_name_that_can_be_one)
{
    char longest[256];
    weir_tls_hello hello;

    assert_int_equal(read_name("A-1.x_y.Example", 15, &hello), 1);
    assert_string_equal(hello.server_name, "a-1.x_y.example");
    assert_int_equal(read_name("example.com.", 12, &hello), 1);
    assert_string_equal(hello.server_name, "example.com");
    assert_int_equal(read_name("::1", 3, &hello), 1); /* some clients do */
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(read_name(longest, 255, &hello), 1);
    assert_int_equal(strlen(hello.server_name), 255);
    assert_int_equal(read_name(longest, 256, &hello), WEIR_EMALFORMED);
}

TEST(tls_hello, with_a_name_that_can_be_none_is_rejected)
{
    static const char *const names[] = {
        "",         "a b", "a/b",  "../etc/passwd", "*.example.com", "a\nb", ".",  ".a",
        "a..b",     "a..", "..",   "a%00b",         "a\x7f",         "a,b",  "a'", "\"a\"",
        "\xc3\xa4", "a@b", "a\\b", "[::1]",         "a=b",
    };
    weir_tls_hello hello;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(read_name(names[i], strlen(names[i]), &hello), WEIR_EMALFORMED);
    assert_int_equal(read_name("a\0b", 3, &hello), WEIR_EMALFORMED);
    assert_int_equal(read_name("a\0", 2, &hello), WEIR_EMALFORMED);
}

static void assert_extension_refused(size_t type, const void *bytes, size_t length)
{
    struct hello_wire extensions = {.length = 0};
    weir_tls_hello hello;

    hello_put_extension(&extensions, type, bytes, length);
    assert_int_equal(read_extensions(&extensions, &hello), WEIR_EMALFORMED);
}

#define REFUSED(type, bytes) assert_extension_refused(type, bytes, sizeof(bytes) - 1)

TEST(tls_hello, with_a_list_of_names_that_is_not_one_name_is_rejected)
{
    REFUSED(0, "");
    REFUSED(0, "\x00");
    REFUSED(0, "\x00\x00");
    REFUSED(0, "\x00\x04\x00\x00\x01");   /* the list is longer than the extension */
    REFUSED(0, "\x00\x04\x00\x00\x02z");  /* the name longer than the list */
    REFUSED(0, "\x00\x04\x00\xff\xffz");  /* much */
    REFUSED(0, "\x00\x04\x01\x00\x01z");  /* a name of another kind */
    REFUSED(0, "\x00\x04\x00\x00\x01z!"); /* something behind the list */
    REFUSED(0, "\x00\x05\x00\x00\x01z!"); /* and in it */
    REFUSED(0, "\x00\x08\0\0\1a\0\0\1b"); /* two */
    REFUSED(0, "\x00\x03\x00\x00\x01z");  /* the list ends before the name */
}

TEST(tls_hello, with_a_name_twice_is_rejected)
{
    struct hello_wire extensions = {.length = 0};
    weir_tls_hello hello;

    hello_put_name(&extensions, "a.example", 9);
    hello_put_extension(&extensions, 23, "", 0);
    hello_put_name(&extensions, "b.example", 9);
    assert_int_equal(read_extensions(&extensions, &hello), WEIR_EMALFORMED);
}

/* ---- protocols and versions ---- */

static void assert_alpn(const void *list, size_t length, const char *expected)
{
    struct hello_wire extension = {.length = 0}, extensions = {.length = 0};
    weir_tls_hello hello;

    hello_put_block(&extension, 2, list, length);
    hello_put_extension(&extensions, 16, extension.bytes, extension.length);
    assert_int_equal(read_extensions(&extensions, &hello), 1);
    assert_string_equal(hello.alpn, expected);
}

TEST(tls_hello, names_the_protocols_that_can_be_named)
{
    char many[130 * 4], expected[256] = "aaa";

    assert_alpn("\x02h2", 3, "h2");
    assert_alpn("\x02\x0a\x0a\x02h2\x03"
                "a,b"
                "\x03x y",
                14, "h2"); /* made up, as by GREASE */
    for (size_t i = 0; i < sizeof(many); i += 4)
        memcpy(many + i,
               "\x03"
               "aaa",
               4);
    for (size_t i = 3; i + 4 < sizeof(expected); i += 4)
        memcpy(expected + i, ",aaa", 5);
    assert_alpn(many, sizeof(many), expected); /* as many as there is room for */
}

TEST(tls_hello, names_protocols_as_long_as_there_is_room)
{
    char list[256 + 3], expected[256];

    memset(list, 'a', sizeof(list));
    memset(expected, 'a', sizeof(expected));
    list[0] = (char)251; /* and a comma, and three more: it just fits */
    memcpy(list + 252, "\x03xyz", 4);
    memcpy(expected + 251, ",xyz", 5);
    assert_alpn(list, 256, expected);
    list[252] = 'a';
    list[0] = (char)252; /* one too many: this is where it is cut off, whatever comes then */
    memcpy(list + 253, "\x03xyz\x01", 5);
    expected[252] = '\0';
    expected[251] = 'a';
    assert_alpn(list, 259, expected);
}

TEST(tls_hello, with_protocols_that_make_no_sense_is_rejected)
{
    REFUSED(16, "");
    REFUSED(16, "\x00\x00");
    REFUSED(16, "\x00\x01\x00");        /* an empty one */
    REFUSED(16, "\x00\x03\x03h2");      /* longer than the list */
    REFUSED(16, "\x00\x04\x02h2");      /* the list longer than the extension */
    REFUSED(16, "\x00\x03\x02h2!");     /* something behind it */
    REFUSED(16, "\x00\x05\x02h2\x02h"); /* the second one */
}

static void assert_version(const void *versions, size_t length, unsigned expected)
{
    struct hello_wire extensions = {.length = 0};
    weir_tls_hello hello;

    hello_put_extension(&extensions, 43, versions, length);
    assert_int_equal(read_extensions(&extensions, &hello), 1);
    assert_int_equal(hello.version, expected);
}

TEST(tls_hello, offers_the_highest_version_that_exists)
{
    assert_version("\x02\x03\x04", 3, 0x0304);
    assert_version("\x06\x7a\x7a\x03\x03\x03\x04", 7, 0x0304); /* GREASE */
    assert_version("\x04\x7f\x1c\x03\x02", 5, 0x0302);         /* a draft */
    assert_version("\x02\x0a\x0a", 3, 0);
    REFUSED(43, "");
    REFUSED(43, "\x00");
    REFUSED(43, "\x03\x03\x04\x03");
    REFUSED(43, "\x02\x03\x04\x03");
    REFUSED(43, "\x04\x03\x04");
}

TEST(tls_hello, of_old_clients_has_no_extensions)
{
    struct hello_wire body = {.length = 0}, wire = {.length = 0};
    weir_tls_hello hello;

    hello_put_beginning(&body);
    hello_put_hello(&wire, &body, 16384);
    assert_int_equal(read_wire(&wire, &hello), 1);
    assert_int_equal(hello.version, 0x0303);
    assert_string_equal(hello.server_name, "");
}

/* ---- what comes before the extensions ---- */

static int read_body(unsigned version, size_t session, size_t suites, size_t compressions)
{
    static const uint8_t zeroes[64];
    struct hello_wire body = {.length = 0}, wire = {.length = 0};
    weir_tls_hello hello = {.version = 0};
    int result;

    hello_put_number(&body, 2, version);
    hello_put(&body, zeroes, 32);
    hello_put_block(&body, 1, zeroes, session);
    hello_put_block(&body, 2, zeroes, suites);
    hello_put_block(&body, 1, zeroes, compressions);
    hello_put_hello(&wire, &body, 16384);
    result = read_wire(&wire, &hello);
    return result == 1 ? hello.version : result;
}

TEST(tls_hello, has_lists_of_possible_lengths)
{
    assert_int_equal(read_body(0x0303, 0, 2, 1), 0x0303);
    assert_int_equal(read_body(0x0303, 32, 64, 64), 0x0303);
    assert_int_equal(read_body(0x0303, 33, 2, 1), WEIR_EMALFORMED);
    assert_int_equal(read_body(0x0303, 0, 0, 1), WEIR_EMALFORMED);
    assert_int_equal(read_body(0x0303, 0, 3, 1), WEIR_EMALFORMED);
    assert_int_equal(read_body(0x0303, 0, 2, 0), WEIR_EMALFORMED);
}

TEST(tls_hello, has_a_version_from_ssl_3_on)
{
    assert_int_equal(read_body(0x0300, 0, 2, 1), 0x0300);
    assert_int_equal(read_body(0x0304, 0, 2, 1), 0x0303); /* 1.3 is offered otherwise */
    assert_int_equal(read_body(0x0400, 0, 2, 1), 0x0303);
    assert_int_equal(read_body(0x0002, 0, 2, 1), WEIR_EMALFORMED);
    assert_int_equal(read_body(0x02ff, 0, 2, 1), WEIR_EMALFORMED);
}

/* ---- lengths that lie ---- */

/* Each length is made longer and shorter: the hello is never read beyond its end (ASan sees to
 * that), nor is another name found in it. (What comes before the extensions may take up all the
 * rest: then there are none.) */
TEST(tls_hello, whose_lengths_lie_is_rejected)
{
    static const size_t places[] = {8, 43, 76 + 1, 82, 85, 89, 91, 94}; /* their lowest bytes */
    struct hello_wire extensions = {.length = 0}, wire;
    weir_tls_hello hello;

    hello_put_name(&extensions, "example.com", 11);
    hello_make(&wire, &extensions, 16384);
    assert_int_equal(read_wire(&wire, &hello), 1);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        for (int change = 1; change < 256; change++) {
            uint8_t *place = &wire.bytes[places[i]], before = *place;
            uint8_t *copy = NULL;
            int result;

            *place = (uint8_t)(before + change);
            copy = malloc(wire.length);
            memcpy(copy, wire.bytes, wire.length);
            result = weir_tls_hello_read(weir_span_of(copy, wire.length), &hello);
            assert_true(result == WEIR_EMALFORMED || (places[i] == 8 && result == 0) ||
                        (places[i] < 85 && result == 1 && hello.server_name[0] == '\0'));
            free(copy);
            *place = before;
        }
}

TEST(tls_hello, with_something_behind_its_end_is_rejected)
{
    struct hello_wire extensions = {.length = 0}, body = {.length = 0}, wire = {.length = 0};
    weir_tls_hello hello;

    hello_put_name(&extensions, "example.com", 11);
    hello_put_beginning(&body);
    hello_put_block(&body, 2, extensions.bytes, extensions.length);
    hello_put(&body, "!", 1);
    hello_put_hello(&wire, &body, 16384);
    assert_int_equal(read_wire(&wire, &hello), WEIR_EMALFORMED);

    hello_make(&wire, &extensions, 16384); /* and in its record */
    hello_put(&wire, "\x02\x00\x00\x00", 4);
    wire.bytes[4] = (uint8_t)(wire.bytes[4] + 4);
    assert_int_equal(read_wire(&wire, &hello), WEIR_EMALFORMED);
}

static int read_bytes(const void *bytes, size_t length)
{
    weir_tls_hello hello;

    return weir_tls_hello_read(weir_span_of(bytes, length), &hello);
}

#define READ(bytes) read_bytes(bytes, sizeof(bytes) - 1)

TEST(tls_hello, is_nothing_else)
{
    assert_int_equal(READ(""), 0);
    assert_int_equal(READ("G"), WEIR_ENOTTLS);
    assert_int_equal(READ("GET / HTTP/1.1\r\n"), WEIR_ENOTTLS);
    assert_int_equal(READ("\x80\x2e\x01\x00\x02"), WEIR_ENOTTLS); /* SSL 2 */
    assert_int_equal(READ("\x15\x03\x01\x00\x02\x01\x00"), WEIR_ENOTTLS);
    assert_int_equal(READ("\x16"), 0);
    assert_int_equal(READ("\x16\x02"), WEIR_ENOTTLS);
    assert_int_equal(READ("\x16\x03\x01\x00\x04\x02\x00\x00\x00"), WEIR_ENOTTLS); /* a server's */
    assert_int_equal(READ("\x16\x03\x01\x00\x00"), WEIR_EMALFORMED);
    assert_int_equal(READ("\x16\x03\x01\x40\x01"), WEIR_EMALFORMED);
    assert_int_equal(READ("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), WEIR_EMALFORMED);
    assert_int_equal(READ("\x16\x03\x01\x00\x01\x01\x16"), 0);
    assert_int_equal(READ("\x16\x03\x01\x00\x01\x01\x17"), WEIR_EMALFORMED);
    assert_int_equal(READ("\x16\x03\x01\x00\x01\x01\x16\x02"), WEIR_EMALFORMED);
    assert_int_equal(READ("\x16\x03\x01\x00\x01\x01\x16\x03\x01\x00\x00"), WEIR_EMALFORMED);
}

TEST(tls_hello, that_is_too_long_is_rejected_as_soon_as_it_says_so)
{
    struct hello_wire extensions = {.length = 0}, wire;
    weir_tls_hello hello;

    assert_int_equal(READ("\x16\x03\x01\x00\x04\x01\xff\xff\xff"), WEIR_ETOOLONG);
    assert_int_equal(READ("\x16\x03\x01\x00\x04\x01\x00\xff\xf8"), WEIR_ETOOLONG);
    assert_int_equal(READ("\x16\x03\x01\x00\x04\x01\x00\xff\xf7"), 0); /* exactly the most */
    hello_put_number(&extensions, 2, 21);
    hello_put_number(&extensions, 2, 60000);
    extensions.length += 60000;
    hello_make(&wire, &extensions, 16384);
    assert_int_equal(read_wire(&wire, &hello), 1);
    wire.length = 49167; /* three of its records; the next one would end too far away */
    hello_put(&wire, "\x16\x03\x01\x3f\xed", 5);
    assert_int_equal(read_wire(&wire, &hello), WEIR_ETOOLONG);
    wire.bytes[wire.length - 1]--;
    assert_int_equal(read_wire(&wire, &hello), 0);
    hello_make(&wire, &extensions, 40); /* too long because of the many record headers */
    assert_int_equal(read_wire(&wire, &hello), WEIR_ETOOLONG);
}

/* ---- the same as OpenSSL ---- */

static int note_name(SSL *ssl, int *alert, void *arg)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    char *noted = arg;

    (void)alert;
    (void)snprintf(noted, 300, "%s", name != NULL ? name : "");
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* The name that a server of OpenSSL's reads; false if it did not come to that. */
static bool openssl_reads(const struct hello_wire *wire, char name[300])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    SSL *ssl;

    strcpy(name, "?");
    SSL_CTX_set_tlsext_servername_callback(ctx, note_name);
    SSL_CTX_set_tlsext_servername_arg(ctx, name);
    ssl = SSL_new(ctx);
    SSL_set_bio(ssl, BIO_new_mem_buf(wire->bytes, (int)wire->length), BIO_new(BIO_s_mem()));
    (void)SSL_accept(ssl);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    return strcmp(name, "?") != 0;
}

static bool is_same_name(const char *ours, const char *theirs)
{
    size_t length = strlen(theirs);

    if (length > 0 && theirs[length - 1] == '.')
        length--;
    return strlen(ours) == length && strncasecmp(ours, theirs, length) == 0;
}

static void begin_same(void *state)
{
    hello_make_openssl(state, "www.example.com", "\x02h2\x08http/1.1", TLS1_3_VERSION);
}

enum {
    CHANGE_BYTE,
    CHANGE_BYTE_NEAR_NAME,
    CUT_RECORD,
    CHANGE_KINDS,
};

static void cut_record(struct hello_wire *wire, size_t record)
{
    struct hello_wire cut = {.length = 0};

    if ((size_t)(wire->bytes[3] << 8 | wire->bytes[4]) + 5 != wire->length)
        return; /* it has been */
    hello_put_records(&cut, wire->bytes + 5, wire->length - 5, record);
    *wire = cut;
}

/* Whatever is done to the bytes: if we read a name, and OpenSSL does, it is the same. */
static bool change_and_compare(void *state, const struct property_step *step)
{
    struct hello_wire *wire = state;
    weir_tls_hello hello;
    char name[300];
    size_t place = step->numbers[0] % wire->length;

    if (step->kind == CUT_RECORD)
        cut_record(wire, 1 + step->numbers[0] % 300);
    else
        wire->bytes[step->kind == CHANGE_BYTE ? place : 80 + place % 80] =
            (uint8_t)(step->numbers[1] % 7 == 0 ? step->numbers[2] : step->numbers[2] % 5);
    if (read_wire(wire, &hello) == 1 && openssl_reads(wire, name))
        PROPERTY(is_same_name(hello.server_name, name));
    return true;
}

static void describe_change(const struct property_step *step, char *text, size_t size)
{
    (void)snprintf(text, size, "kind %u: %u %u %u", step->kind, step->numbers[0], step->numbers[1],
                   step->numbers[2]);
}

static void end_same(void *state)
{
    (void)state;
}

TEST(tls_hello, has_the_name_that_openssl_reads)
{
    static const struct property property = {
        .name = "hello",
        .state_size = sizeof(struct hello_wire),
        .kinds = CHANGE_KINDS,
        .begin = begin_same,
        .step = change_and_compare,
        .describe = describe_change,
        .end = end_same,
    };
    struct hello_wire wire;
    char name[300];

    hello_make_openssl(&wire, "www.example.com", "\x02h2", TLS1_3_VERSION);
    assert_true(openssl_reads(&wire, name)); /* or else nothing would be compared */
    assert_string_equal(name, "www.example.com");
    property_check(&property, 400, 4);
}
