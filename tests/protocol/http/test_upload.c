/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_body.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/composite.h>
#include <weir/file_range.h>

#include "support/memory.h"
#include "support/protocol/http/disk_faults.h"
#include "support/protocol/http/exchange_fixture.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

#define TYPE "multipart/form-data; boundary=xYz"
#define PART(name) "--xYz\r\nContent-Disposition: form-data; name=" name "\r\n\r\n"
#define END "\r\n--xYz--\r\n"

/* A server whose uploads are kept here. */
static struct {
    weir_group *group;
    weir_embedded *embedded;
    weir_http_upload_options options;
    weir_http_upload *upload;
    int err;
    int calls;
    uint64_t progress;
} server;

static void on_upload(weir_http_exchange *exchange, weir_http_upload *upload, int err,
                      void *user_data)
{
    assert_ptr_equal(user_data, &server);
    assert_int_equal(upload == NULL, err != 0);
    server.upload = upload;
    server.err = err;
    server.calls++;
    if (!err)
        assert_int_equal(weir_http_respond_text(exchange, 200, "ok"), 0);
}

static void handle(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_upload_read(exchange, &server.options, on_upload, &server);
}

static void on_progress(weir_http_exchange *exchange, uint64_t bytes, int64_t total,
                        void *user_data)
{
    assert_non_null(exchange);
    assert_ptr_equal(user_data, &server);
    assert_int_equal(total, WEIR_HTTP_UNKNOWN_LENGTH);
    server.progress = bytes;
}

static const weir_http_route routes[] = {
    {"POST", "/", handle, .streaming = true}, {"POST", "/whole", handle, .streaming = false}, {0}};

static void open_server(const weir_http_upload_options *options)
{
    memset(&server, 0, sizeof(server));
    server.options = *options;
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &server.group), 0);
    server.options.group = server.group;
    server.options.progress = on_progress;
    server.embedded = exchange_open(routes);
}

/* Waits for what the file's executor has been asked to do. */
static int nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)ret_value;
    return status;
}

static void settle(void)
{
    weir_promise *promise = NULL;

    while (weir_group_submit(server.group, nothing, NULL, &promise) == -ENOMEM)
        ; /* fails once, in the test of that */
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), 0);
    weir_promise_release(promise);
    weir_embedded_run(server.embedded);
}

static void close_server(void)
{
    weir_http_upload_release(server.upload);
    settle();
    weir_embedded_release(server.embedded);
    assert_int_equal(weir_group_shutdown(server.group, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(server.group, TEST_TIMEOUT_NS), 0);
    weir_group_release(server.group);
}

static void put_head(const char *target, const char *type)
{
    weir_http_request *request = NULL;
    int64_t unknown = WEIR_HTTP_UNKNOWN_LENGTH;

    assert_int_equal(weir_http_request_create("POST", target, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, unknown), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_request_headers(request),
                                                WEIR_HTTP_CONTENT_TYPE, type),
                     0);
    (void)weir_embedded_write_inbound(server.embedded, weir_http_request_msg(request));
}

/* Content in pieces of `piece` bytes, and the end. */
static void put_content(const char *text, size_t piece)
{
    weir_buf *buf = NULL;

    for (size_t at = 0, length = strlen(text); at < length; at += piece) {
        assert_int_equal(
            weir_buf_create_from(text + at, length - at < piece ? length - at : piece, &buf), 0);
        (void)weir_embedded_write_inbound(server.embedded, weir_buf_msg(buf));
        settle();
    }
    exchange_put_end(server.embedded);
    settle();
}

static void assert_part(size_t index, const char *name, const char *content, bool is_in_memory)
{
    weir_http_upload *upload = server.upload;
    char found[512];
    size_t length = strlen(content);

    assert_span_text(weir_http_upload_part(upload, index)->name, name);
    assert_int_equal(weir_http_upload_length(upload, index), length);
    assert_int_equal(weir_http_upload_bytes(upload, index).data != NULL, is_in_memory);
    if (is_in_memory)
        assert_span_text(weir_http_upload_bytes(upload, index), content);
    assert_int_equal(weir_http_upload_copy(upload, index, 0, found, length), 0);
    assert_memory_equal(found, content, length);
    if (length > 1) {
        assert_int_equal(weir_http_upload_copy(upload, index, 1, found, length - 1), 0);
        assert_memory_equal(found, content + 1, length - 1);
    }
    assert_int_equal(weir_http_upload_copy(upload, index, 1, found, length), WEIR_EBOUNDS);
    assert_int_equal(weir_http_upload_copy(upload, index, length + 1, found, 0), WEIR_EBOUNDS);
}

static const char three_parts[] = PART("a") "1\r\n" PART("b") "0123456789abcdef\r\n" PART(
    "c; filename=x") "\r\n--\r\n--xY\r\n" PART("d") END;

static void assert_three_parts(size_t piece, bool is_b_in_memory)
{
    put_head("/", TYPE);
    put_content(three_parts, piece);
    assert_int_equal(server.calls, 1);
    assert_int_equal(server.err, 0);
    assert_exchange_sent(server.embedded, "200(2) | ok | end");
    assert_int_equal(server.progress, strlen(three_parts));
    assert_int_equal(weir_http_upload_count(server.upload), 4);
    assert_part(0, "a", "1", true);
    assert_part(1, "b", "0123456789abcdef", is_b_in_memory);
    assert_part(2, "c", "\r\n--\r\n--xY", true);
    assert_part(3, "d", "", true);
    assert_span_text(weir_http_upload_part(server.upload, 2)->filename, "x");
    assert_int_equal(weir_http_upload_find(server.upload, "c"), 2);
    assert_int_equal(weir_http_upload_find(server.upload, "e"), -ENOENT);
    assert_null(weir_http_upload_part(server.upload, 4));
    assert_null(weir_http_upload_bytes(server.upload, 4).data);
    assert_int_equal(weir_http_upload_length(server.upload, 4), 0);
    weir_http_upload_release(server.upload);
    server.upload = NULL;
    server.calls = 0;
}

TEST(upload, is_collected_in_memory)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.folder = "/does/not/exist"));
    assert_three_parts(SIZE_MAX, true);
    assert_three_parts(1, true);
    close_server();
}

TEST(upload, large_parts_are_written_to_a_file)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 15));
    assert_three_parts(SIZE_MAX, false);
    assert_three_parts(1, false);
    for (size_t piece = 2; piece < 60; piece += 7)
        assert_three_parts(piece, false);
    close_server();
}

TEST(upload, all_parts_can_be_written_to_the_file)
{
    static const size_t pieces[] = {5, SIZE_MAX};

    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = WEIR_OFF));
    for (size_t i = 0; i < 2; i++) {
        put_head("/", TYPE);
        put_content(PART("a") "123\r\n" PART("b") "45\r\n" PART("c") END, pieces[i]);
        assert_int_equal(server.err, 0);
        assert_part(0, "a", "123", false);
        assert_part(1, "b", "45", false);
        assert_part(2, "c", "", true);
        weir_http_upload_release(server.upload);
        server.upload = NULL;
    }
    close_server();
}

TEST(upload, memory_is_limited_for_all_parts_together)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory = 1000));
    put_head("/", TYPE);
    put_content(PART("a") "12345678901234567890\r\n" PART("b") "x" END, SIZE_MAX);
    assert_int_equal(server.err, 0);
    weir_http_upload_release(server.upload);
    server.upload = NULL;
    put_head("/", TYPE);
    for (int i = 0; i < 9; i++)
        exchange_put_content(server.embedded, PART("a") "123456789012345678901234567890\r\n");
    exchange_put_content(server.embedded, END);
    exchange_put_end(server.embedded);
    settle();
    assert_int_equal(server.err, WEIR_ETOOLONG); /* the heads */
    assert_exchange_sent(server.embedded,
                         "200(2) | ok | end | 413(18) | Content Too Large\n | end");
    close_server();
}

/* Each large part is in memory until it is too large; a small one behind them still is. */
TEST(upload, parts_that_were_written_to_the_file_leave_the_memory)
{
    char text[2100];
    size_t length;

    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 900, .max_memory = 3000));
    put_head("/", TYPE);
    for (int i = 0; i < 4; i++) {
        length = (size_t)snprintf(text, sizeof(text), PART("a") "%0*d\r\n", 1000, i);
        for (size_t at = 0; at < length; at += 800) {
            weir_buf *buf = NULL;
            size_t size = length - at < 800 ? length - at : 800;

            assert_int_equal(weir_buf_create_from(text + at, size, &buf), 0);
            (void)weir_embedded_write_inbound(server.embedded, weir_buf_msg(buf));
            settle();
        }
    }
    (void)snprintf(text, sizeof(text), PART("b") "%0*d" END, 800, 1);
    put_content(text, SIZE_MAX);
    assert_int_equal(server.err, 0);
    assert_int_equal(weir_http_upload_count(server.upload), 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(weir_http_upload_bytes(server.upload, i).data != NULL, i == 4);
    close_server();
}

TEST(upload, that_does_not_stream_is_collected_too)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 2));
    put_head("/whole", TYPE);
    put_content(PART("a") "123\r\n" PART("b") "45" END, SIZE_MAX);
    settle();
    assert_int_equal(server.err, 0);
    assert_part(0, "a", "123", false);
    assert_part(1, "b", "45", true);
    put_head("/whole", TYPE);
    weir_http_upload_release(server.upload);
    put_content(PART("a") "123", SIZE_MAX);
    assert_int_equal(server.err, WEIR_EMALFORMED);
    assert_int_equal(server.calls, 2);
    close_server();
}

TEST(upload, of_another_type_is_refused)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.folder = NULL));
    put_head("/", "text/plain");
    exchange_put_end(server.embedded);
    assert_int_equal(server.err, -ENOTSUP);
    assert_exchange_sent(server.embedded, "415(23) | Unsupported Media Type\n | end");
    put_head("/", "multipart/form-data");
    exchange_put_end(server.embedded);
    assert_int_equal(server.err, WEIR_EMALFORMED);
    assert_exchange_sent(server.embedded, "400(12) | Bad Request\n | end");
    server.options.max_memory = -1;
    put_head("/", TYPE);
    exchange_put_end(server.embedded);
    assert_int_equal(server.err, -EINVAL);
    assert_int_equal(server.calls, 3);
    close_server();
}

TEST(upload, that_is_malformed_is_refused_at_once)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.folder = NULL));
    put_head("/", TYPE);
    exchange_put_content(server.embedded, "--xYz?");
    assert_int_equal(server.err, WEIR_EMALFORMED);
    assert_exchange_sent(server.embedded, "400(12) | Bad Request\n | end");
    exchange_put_content(server.embedded, "more");
    exchange_put_end(server.embedded);
    settle();
    assert_int_equal(server.calls, 1);
    put_head("/", TYPE);
    put_content(PART("a") "1", SIZE_MAX);
    assert_int_equal(server.err, WEIR_EMALFORMED);
    assert_int_equal(server.calls, 2);
    close_server();
}

TEST(upload, of_a_million_parts_is_refused_at_the_limit)
{
    size_t bytes;

    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.folder = NULL));
    bytes = test_memory_live_bytes();
    put_head("/", TYPE);
    for (int i = 0; i < 1100 && server.calls == 0; i++)
        exchange_put_content(server.embedded, PART("a") "1\r\n");
    assert_int_equal(server.err, WEIR_ETOOLONG);
    exchange_put_end(server.embedded);
    settle();
    assert_true(test_memory_live_bytes() < bytes + 100000);
    close_server();
}

TEST(upload, of_a_lost_connection_ends_with_an_error)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = WEIR_OFF));
    put_head("/", TYPE);
    exchange_put_content(server.embedded, PART("a") "123\r\n"); /* is being written */
    (void)weir_embedded_finish(server.embedded);
    settle();
    assert_int_equal(server.calls, 1);
    assert_int_equal(server.err, WEIR_ECLOSED);
    close_server();
}

TEST(upload, reports_errors_of_the_disk)
{
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 2, .folder = "/does/not/exist"));
    put_head("/", TYPE);
    put_content(PART("a") "123" END, SIZE_MAX);
    assert_int_equal(server.err, -ENOENT);
    assert_int_equal(server.calls, 1);
    assert_exchange_sent(server.embedded, "500(22) | Internal Server Error\n | end");
    close_server();
}

TEST(upload, parts_become_messages)
{
    weir_msg *msg = NULL;
    weir_file_range *range;

    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 2));
    put_head("/", TYPE);
    put_content(PART("a") "12\r\n" PART("b") "345" END, SIZE_MAX);
    assert_int_equal(weir_http_upload_msg(server.upload, 2, &msg), WEIR_EBOUNDS);
    assert_int_equal(weir_http_upload_msg(server.upload, 0, &msg), 0);
    assert_span_text(weir_buf_span(weir_buf_of(msg)), "12");
    weir_msg_release(msg);
    assert_int_equal(weir_http_upload_msg(server.upload, 1, &msg), 0);
    weir_http_upload_release(server.upload);
    server.upload = NULL;
    range = weir_file_range_of(msg);
    assert_int_equal(weir_file_range_length(range), 3);
    {
        char found[3];

        assert_int_equal(
            pread(weir_file_range_descriptor(range), found, 3, weir_file_range_offset(range)), 3);
        assert_memory_equal(found, "345", 3);
    }
    weir_msg_release(msg);
    close_server();
}

TEST(upload, parts_are_saved_as_files)
{
    char folder[] = "/tmp/weir-upload-XXXXXX", path[64], found[8];
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/x", folder);
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 2, .folder = folder));
    put_head("/", TYPE);
    put_content(PART("a") "12\r\n" PART("b") "345" END, SIZE_MAX);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(weir_http_upload_save(server.upload, i, path), 0);
        assert_int_equal(weir_http_upload_save(server.upload, i, path), -EEXIST);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(fread(found, 1, sizeof(found), file), 2 + i);
        assert_memory_equal(found, i == 0 ? "12" : "345", 2 + i);
        (void)fclose(file);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(weir_http_upload_save(server.upload, 2, path), WEIR_EBOUNDS);
    close_server();
    assert_int_equal(rmdir(folder), 0); /* the temporary file has no name */
}

TEST(upload, parts_of_any_length_are_saved_as_files)
{
    enum { LENGTH = 300000 };
    char folder[] = "/tmp/weir-upload-XXXXXX", path[64];
    char *text = malloc(LENGTH + 200), *found = malloc(LENGTH + 1), *content;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/x", folder);
    content = text + sprintf(text, "%s", PART("a"));
    for (size_t i = 0; i < LENGTH; i++)
        content[i] = (char)('a' + i / 1000 % 26);
    strcpy(content + LENGTH, END);
    open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 2));
    put_head("/", TYPE);
    put_content(text, 65536);
    assert_int_equal(server.err, 0);
    assert_int_equal(weir_http_upload_save(server.upload, 0, path), 0);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, LENGTH + 1, file), LENGTH);
    assert_memory_equal(found, content, LENGTH);
    (void)fclose(file);
    assert_int_equal(unlink(path), 0);
    close_server();
    assert_int_equal(rmdir(folder), 0);
    free(text);
    free(found);
}

/* Of a composite that a handler has read from: the rest of it. */
TEST(upload, content_may_be_in_components)
{
    weir_composite *composite = NULL;
    weir_buf *part = NULL;
    size_t length = strlen(three_parts), at = 0;

    for (size_t skipped = 0; skipped <= 12; skipped += 4) {
        open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 15));
        put_head("/", TYPE);
        assert_int_equal(weir_composite_create(SIZE_MAX, &composite), 0);
        assert_int_equal(weir_buf_create_from("skipped bytes", skipped, &part), 0);
        for (at = 0; part != NULL; at += 10) {
            assert_int_equal(weir_composite_add(composite, weir_buf_msg(part)), 0);
            part = NULL;
            if (at < length)
                assert_int_equal(weir_buf_create_from(three_parts + at,
                                                      length - at < 10 ? length - at : 10, &part),
                                 0);
        }
        assert_int_equal(weir_composite_skip(composite, skipped), 0);
        (void)weir_embedded_write_inbound(server.embedded, weir_composite_msg(composite));
        settle();
        exchange_put_end(server.embedded);
        settle();
        assert_int_equal(server.err, 0);
        assert_int_equal(weir_http_upload_count(server.upload), 4);
        assert_part(1, "b", "0123456789abcdef", false);
        assert_int_equal(server.progress, length);
        close_server();
    }
}

static void upload_without_memory(unsigned n)
{
    weir_span content = weir_span_of_text(three_parts);
    weir_buf *buf = NULL;

    put_head("/", TYPE);
    for (size_t at = 0; at < content.length; at += 50) {
        size_t length = content.length - at < 50 ? content.length - at : 50;

        assert_int_equal(weir_buf_create_from(content.data + at, length, &buf), 0);
        test_memory_fail_at(at == 50 ? n : 0);
        (void)weir_embedded_write_inbound(server.embedded, weir_buf_msg(buf));
        settle();
    }
}

TEST(upload, survives_without_memory)
{
    bool has_failed = true;

    for (unsigned n = 1; has_failed; n++) {
        open_server(WEIR_HTTP_UPLOAD_OPTIONS(.max_memory_part = 4));
        upload_without_memory(n);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        exchange_put_end(server.embedded);
        settle();
        assert_int_equal(server.calls, 1);
        close_server();
    }
}
