/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: lines, escaping, refusals, lost connections, rotation, slow files.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/file_range.h>
#include <weir/http1.h>
#include <weir/log.h>

#include "os/thread.h"
#include "protocol/http/access_line.h"
#include "support/memory.h"
#include "support/protocol/http/filter_fixture.h"

/* 10 October 2026, 13:55:36.789 UTC */
#define TIME_NS (INT64_C(1791640536789) * 1000000)

/* ---- lines ---- */

static const char *line_of(enum weir_http_log_format format, weir__http_access access)
{
    static char line[2 * WEIR__HTTP_ACCESS_LINE_MAX];
    weir_address remote;
    weir_buf *buf = NULL;

    if (access.remote == NULL) {
        assert_int_equal(weir_address_parse("192.0.2.1:1000", &remote), 0);
        access.remote = &remote;
    }
    access.time_ns = TIME_NS;
    assert_int_equal(weir_buf_create(0, 0, &buf), 0);
    assert_int_equal(weir__http_access_line(buf, format, &access), 0);
    assert_true(weir_buf_readable(buf) <= WEIR__HTTP_ACCESS_LINE_MAX);
    assert_int_equal(weir_buf_get_string(buf, 0, weir_buf_readable(buf), line, sizeof(line)), 0);
    weir_buf_release(buf);
    return line;
}

TEST(access_line, has_the_common_and_combined_formats)
{
    weir_http_request *request =
        filter_make_request("GET /a?b=c\nReferer: http://x/\nUser-Agent: test/1.0 (x)\n", 0);
    weir__http_access access = {.request = request, .status = 200, .bytes = 1234};

    assert_string_equal(line_of(WEIR_HTTP_LOG_COMMON, access),
                        "192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] \"GET /a?b=c HTTP/1.1\" "
                        "200 1234\n");
    assert_string_equal(line_of(WEIR_HTTP_LOG_COMBINED, access),
                        "192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] \"GET /a?b=c HTTP/1.1\" "
                        "200 1234 \"http://x/\" \"test/1.0 (x)\"\n");
    access = (weir__http_access){.status = 400};
    assert_string_equal(line_of(WEIR_HTTP_LOG_COMBINED, access),
                        "192.0.2.1 - - [10/Oct/2026:13:55:36 +0000] \"-\" 400 0 \"-\" \"-\"\n");
    weir_msg_release(weir_http_request_msg(request));
}

TEST(access_line, may_be_json)
{
    weir_http_request *request =
        filter_make_request("POST /a\nHost: h\nReferer: r\nUser-Agent: u\nX-Request-Id: 0123\n", 0);
    weir__http_access access = {
        .request = request, .status = 200, .bytes = 1234, .duration_ns = 5678999};

    assert_string_equal(line_of(WEIR_HTTP_LOG_JSON, access),
                        "{\"time\":\"2026-10-10T13:55:36.789Z\",\"remote\":\"192.0.2.1\","
                        "\"method\":\"POST\",\"target\":\"/a\",\"version\":\"HTTP/1.1\","
                        "\"host\":\"h\",\"referer\":\"r\",\"user_agent\":\"u\","
                        "\"request_id\":\"0123\",\"status\":200,\"bytes\":1234,"
                        "\"duration_us\":5678}\n");
    access =
        (weir__http_access){.status = 400, .detail = "several Host fields", .is_aborted = true};
    assert_string_equal(line_of(WEIR_HTTP_LOG_JSON, access),
                        "{\"time\":\"2026-10-10T13:55:36.789Z\",\"remote\":\"192.0.2.1\","
                        "\"status\":400,\"bytes\":0,\"duration_us\":0,\"aborted\":true,"
                        "\"refusal\":\"several Host fields\"}\n");
    weir_msg_release(weir_http_request_msg(request));
}

/* The token of a dashboard would be in the file for everyone who may read it. */
TEST(access_line, has_no_secrets_of_query_strings)
{
    static const char *const rows[][2] = {
        {"/weir/?token=s3cret", "/weir/?token=-"},
        {"/?a=b&%74oken=s3cret&c=d&access_token=s3cret", "/?a=b&%74oken=-&c=d&access_token=-"},
        {"/?Password=s3cret#x", "/?Password=-"},
        {"/?token=&tokens=1&x=token", "/?token=&tokens=1&x=token"},
        {"/token=1", "/token=1"},
        {"/?&&token=s3cret&&a", "/?&&token=-&&a"},
    };
    char head[512], expected[512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        weir_http_request *request;
        weir__http_access access = {.status = 200};
        const char *line;

        (void)snprintf(head, sizeof(head), "GET /\nReferer: http://x%s\n", rows[i][0]);
        request = filter_make_request(head, 0);
        assert_int_equal(weir_http_request_set_target(request, weir_span_of_text(rows[i][0])), 0);
        access.request = request;
        (void)snprintf(expected, sizeof(expected), "\"GET %s HTTP/1.1\" 200 0 \"http://x%s\"",
                       rows[i][1], rows[i][1]);
        line = line_of(WEIR_HTTP_LOG_COMBINED, access);
        if (strstr(line, expected) == NULL)
            fail_msg("%s", line);
        (void)snprintf(expected, sizeof(expected), "\"target\":\"%s\"", rows[i][1]);
        assert_non_null(strstr(line_of(WEIR_HTTP_LOG_JSON, access), expected));
        weir_msg_release(weir_http_request_msg(request));
    }
}

TEST(access_line, has_addresses_of_all_families)
{
    static const char *const rows[][2] = {
        {"[2001:db8::1]:80", "2001:db8::1 - - "},
        {"unix:/run/x", "unix:/run/x - - "},
        {"unix:@a\" b", "unix:@a\\x22 b - - "},
        {"inproc:y", "inproc:y - - "},
    };
    weir_address remote;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(weir_address_parse(rows[i][0], &remote), 0);
        assert_memory_equal(line_of(WEIR_HTTP_LOG_COMMON, (weir__http_access){.remote = &remote}),
                            rows[i][1], strlen(rows[i][1]));
    }
    remote.length = 0;
    assert_memory_equal(line_of(WEIR_HTTP_LOG_COMMON, (weir__http_access){.remote = &remote}),
                        "- - - ", 6);
}

/* No byte of a header can end its value or the line, whatever it is. */
TEST(access_line, cannot_be_forged)
{
    static const enum weir_http_log_format formats[] = {WEIR_HTTP_LOG_COMBINED, WEIR_HTTP_LOG_JSON};
    weir_http_request *request = NULL;
    char value[260] = "a";
    size_t length = 1;

    for (int byte = 0x20; byte < 0x100; byte++)
        if (byte != 0x7f) /* headers have no control characters but the tab */
            value[length++] = (char)byte;
    value[length++] = '\t';
    value[length++] = 'b';
    assert_int_equal(weir_http_request_create("GET", "/\"x\\", &request), 0);
    assert_int_equal(weir_http_headers_add(weir_http_request_headers(request), WEIR_HTTP_USER_AGENT,
                                           weir_span_of(value, length)),
                     0);
    for (size_t f = 0; f < 2; f++) {
        const char *line =
            line_of(formats[f], (weir__http_access){.request = request, .status = 200});
        unsigned quotes = 0;

        for (size_t i = 0; i + 1 < strlen(line); i++) {
            assert_in_range(line[i], 0x20, 0x7e);
            quotes += line[i] == '"';
        }
        assert_int_equal(line[strlen(line) - 1], '\n');
        assert_int_equal(quotes, f == 0 ? 6 : 6 * 4 + 3 * 2);
        assert_non_null(strstr(line, f == 0 ? "/\\x22x\\x5c" : "/\\u0022x\\u005c"));
        assert_non_null(strstr(line, f == 0 ? "\\xff\\x09b" : "\\u00ff\\u0009b"));
    }
    weir_msg_release(weir_http_request_msg(request));
}

TEST(access_line, cuts_long_values)
{
    weir_http_request *request = NULL;
    char *value = malloc(30000);

    memset(value, '"', 30000);
    value[0] = '/';
    value[20000] = '\0';
    assert_int_equal(weir_http_request_create("GET", value, &request), 0);
    for (int name = WEIR_HTTP_OTHER + 1; name < WEIR_HTTP_NAME_COUNT; name++)
        if (name == WEIR_HTTP_USER_AGENT || name == WEIR_HTTP_REFERER || name == WEIR_HTTP_HOST)
            assert_int_equal(weir_http_headers_add(weir_http_request_headers(request),
                                                   (enum weir_http_name)name,
                                                   weir_span_of(value, 20000)),
                             0);
    (void)line_of(WEIR_HTTP_LOG_JSON, (weir__http_access){.request = request});
    (void)line_of(WEIR_HTTP_LOG_COMBINED, (weir__http_access){.request = request});
    weir_msg_release(weir_http_request_msg(request));
    free(value);
}

/* ---- the handler ---- */

struct log_file {
    char folder[64];
    char path[80];
    weir_http_access_log *log;
    char text[4096];
};

static struct log_file *open_log(enum weir_http_log_format format)
{
    static struct log_file file;

    memset(&file, 0, sizeof(file));
    (void)snprintf(file.folder, sizeof(file.folder), "/tmp/weir-access-XXXXXX");
    assert_non_null(mkdtemp(file.folder));
    (void)snprintf(file.path, sizeof(file.path), "%s/log", file.folder);
    assert_int_equal(
        weir_http_access_log_create(
            WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = file.path, .format = format), &file.log),
        0);
    return &file;
}

static const char *read_log(struct log_file *file)
{
    FILE *stream = fopen(file->path, "r");

    assert_non_null(stream);
    file->text[fread(file->text, 1, sizeof(file->text) - 1, stream)] = '\0';
    (void)fclose(stream);
    return file->text;
}

/* Closes the log, and returns what is in the file. */
static const char *close_log(struct log_file *file)
{
    weir_http_access_log_release(file->log);
    (void)read_log(file);
    unlink(file->path);
    rmdir(file->folder);
    return file->text;
}

static weir_embedded *open_with(struct log_file *file)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_access_log_add(weir_embedded_pipeline(embedded), file->log), 0);
    return embedded;
}

TEST(access_log, logs_each_exchange_when_its_response_has_ended)
{
    struct log_file *file = open_log(WEIR_HTTP_LOG_JSON);
    weir_embedded *embedded = open_with(file);
    weir_file_range *range = NULL;
    const char *text, *second, *third;

    filter_receive(embedded, "GET /one\n");
    assert_string_equal(filter_received(embedded), "GET /one (0) | end");
    weir_embedded_advance(embedded, 5678 * 1000);
    filter_write_head(embedded, 103, "", 0);
    filter_write_head(embedded, 200, "", 12);
    filter_write_text(embedded, "hello");
    filter_write_text(embedded, "world");
    assert_int_equal(weir_file_range_create(0, 0, 1000, 0, &range), 0);
    filter_write(embedded, weir_file_range_msg(range));
    filter_write_end(embedded);
    filter_receive(embedded, "HEAD /two\n");
    filter_respond(embedded, 404, "", "not sent");
    filter_receive(embedded, "GET /three\n");
    filter_respond(embedded, 500, "", NULL);
    weir_embedded_release(embedded);
    text = close_log(file);
    second = strchr(text, '\n') + 1;
    third = strchr(second, '\n') + 1;
    assert_non_null(strstr(text, "\"target\":\"/one\""));
    assert_non_null(strstr(text, "\"status\":200,\"bytes\":1010,\"duration_us\":5678}\n"));
    assert_non_null(strstr(second, "\"target\":\"/two\""));
    assert_non_null(strstr(second, "\"status\":404,\"bytes\":0,\"duration_us\":0}\n"));
    assert_non_null(strstr(third, "\"status\":500,\"bytes\":0,"));
    assert_null(strchr(strchr(third, '\n') + 1, '\n'));
}

TEST(access_log, logs_lost_connections)
{
    struct log_file *file = open_log(WEIR_HTTP_LOG_JSON);
    weir_embedded *embedded = open_with(file);
    const char *text;

    filter_receive(embedded, "GET /one\n");
    weir_embedded_release(embedded);
    embedded = open_with(file);
    filter_receive(embedded, "GET /two\n");
    filter_write_head(embedded, 200, "", 10);
    filter_write_text(embedded, "half");
    weir_embedded_release(embedded);
    embedded = open_with(file);
    weir_embedded_release(embedded); /* without an exchange: no line */
    text = close_log(file);
    assert_non_null(
        strstr(text, "\"remote\":\"192.0.2.1\",\"method\":\"GET\",\"target\":\"/one\""));
    assert_non_null(
        strstr(text, "\"status\":499,\"bytes\":0,\"duration_us\":0,\"aborted\":true}\n"));
    assert_non_null(
        strstr(text, "\"status\":200,\"bytes\":4,\"duration_us\":0,\"aborted\":true}\n"));
}

TEST(access_log, logs_refused_requests)
{
    struct log_file *file = open_log(WEIR_HTTP_LOG_JSON);
    weir_embedded *embedded = filter_open();
    const char *text;

    assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), NULL), 0);
    assert_int_equal(weir_http_access_log_add(weir_embedded_pipeline(embedded), file->log), 0);
    filter_receive_text(embedded, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert_non_null(filter_sent(embedded));
    weir_embedded_release(embedded);
    text = close_log(file);
    assert_non_null(strstr(text, "\"status\":400,"));
    assert_non_null(strstr(text, "\"refusal\":\""));
    assert_int_equal(strchr(text, '\n') - text, strlen(text) - 1); /* one line */
}

TEST(access_log, has_the_id_of_the_request)
{
    struct log_file *file = open_log(WEIR_HTTP_LOG_JSON);
    weir_embedded *embedded = open_with(file);

    assert_int_equal(weir_http_request_ids_add(weir_embedded_pipeline(embedded)), 0);
    filter_receive(embedded, "GET /\n");
    filter_respond(embedded, 200, "", NULL);
    weir_embedded_release(embedded);
    assert_non_null(strstr(close_log(file), "\"request_id\":\""));
}

TEST(access_log, is_written_soon_and_can_be_rotated)
{
    struct log_file *file = open_log(WEIR_HTTP_LOG_COMMON);
    weir_embedded *embedded = open_with(file);
    char renamed[96];

    filter_receive(embedded, "GET /one\n");
    filter_respond(embedded, 200, "", NULL);
    while (strstr(read_log(file), "GET /one") == NULL)
        weir__thread_yield();
    (void)snprintf(renamed, sizeof(renamed), "%s.1", file->path);
    assert_int_equal(rename(file->path, renamed), 0);
    weir_http_access_log_reopen(file->log);
    while (access(file->path, F_OK) != 0)
        weir__thread_yield();
    filter_receive(embedded, "GET /two\n");
    filter_respond(embedded, 200, "", NULL);
    weir_embedded_release(embedded);
    assert_non_null(strstr(close_log(file), "GET /two"));
    assert_null(strstr(file->text, "GET /one"));
    unlink(renamed);
    rmdir(file->folder);
}

/* A pipe that nobody reads. */
TEST(access_log, never_waits_for_a_slow_file)
{
    char folder[] = "/tmp/weir-access-XXXXXX", path[64], target[250];
    weir_http_access_log *log = NULL;
    weir_embedded *embedded = filter_open();
    char head[300], bytes[4096];
    int reader;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    weir_log_set_level(WEIR_LOG_OFF);
    assert_int_equal(weir_http_access_log_create(
                         WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = path, .max_queued = 1 << 18), &log),
                     0);
    assert_int_equal(weir_http_access_log_add(weir_embedded_pipeline(embedded), log), 0);
    memset(target, 'x', sizeof(target));
    (void)snprintf(head, sizeof(head), "GET /%.*s\n", 200, target);
    for (int i = 0; i < 3000; i++) {
        filter_receive(embedded, head);
        (void)filter_received(embedded);
        filter_respond(embedded, 200, "", NULL);
        (void)filter_sent(embedded);
    }
    assert_in_range(weir_http_access_log_lost(log), 100, 2900);
    weir_embedded_release(embedded);
    while (read(reader, bytes, sizeof(bytes)) > 0) /* so that it can be closed */
        ;
    close(reader);
    weir_http_access_log_release(log);
    weir_log_set_level(WEIR_LOG_WARN);
    unlink(path);
    rmdir(folder);
}

TEST(access_log, refuses_invalid_settings)
{
    weir_http_access_log *log = NULL;

    assert_int_equal(weir_http_access_log_create(NULL, &log), -EINVAL);
    assert_int_equal(weir_http_access_log_create(
                         WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = "/dev/null", .max_queued = 1), &log),
                     -EINVAL);
    assert_int_equal(
        weir_http_access_log_create(WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = "/none/x"), &log),
        -ENOENT);
    assert_int_equal(weir_http_access_log_create(
                         WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = "/dev/null",
                                                      .format = (enum weir_http_log_format)7),
                         &log),
                     -EINVAL);
}

static bool run_with_failure(unsigned n)
{
    weir_embedded *embedded = filter_open();
    weir_http_request *request = filter_make_request("GET /", 0);
    weir_http_response *response = filter_make_response(200, "", 0);
    weir_http_access_log *log = NULL;
    bool has_failed;

    test_memory_fail_at(n);
    if (weir_http_access_log_create(WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = "/dev/null"), &log) == 0)
        IGNORE_RESULT(weir_http_access_log_add(weir_embedded_pipeline(embedded), log));
    IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_request_msg(request)));
    IGNORE_RESULT(weir_embedded_write_outbound(embedded, weir_http_response_msg(response)));
    IGNORE_RESULT(weir_embedded_write_outbound(embedded, weir_http_end_static()));
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    weir_http_access_log_release(log);
    return has_failed;
}

TEST(access_log, survives_allocation_failures)
{
    unsigned n = 1;

    weir_log_set_level(WEIR_LOG_OFF);
    while (run_with_failure(n))
        n++;
    weir_log_set_level(WEIR_LOG_WARN);
    assert_true(n > 5);
}
