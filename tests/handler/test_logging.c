/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logging handler logs each event and operation, and passes it on.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/composite.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/test.h"

/* ---- what is logged, a line each, without the channel ---- */

static struct {
    char text[8192];
    char subsystem[WEIR_LOGGING_NAME_SIZE];
    char object[128];
    enum weir_log_level level;
} logged;

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    size_t there = strlen(logged.text);

    (void)user_data;
    logged.level = level;
    (void)snprintf(logged.subsystem, sizeof(logged.subsystem), "%s", subsystem);
    (void)snprintf(logged.object, sizeof(logged.object), "%s", object);
    (void)snprintf(logged.text + there, sizeof(logged.text) - there, "%s\n", message);
}

static void restore_log(void)
{
    weir_log_set(NULL, NULL);
    weir_log_set_level(WEIR_LOG_WARN);
    memset(&logged, 0, sizeof(logged));
}

__attribute__((constructor)) static void restore_log_after_each_test(void)
{
    test_before_leak_check(restore_log);
}

static void assert_logged(const char *text)
{
    assert_string_equal(logged.text, text);
    logged.text[0] = '\0';
}

static weir_embedded *open_with(const weir_embedded_options *how,
                                const weir_logging_options *options)
{
    weir_embedded *embedded = NULL;

    weir_log_set(on_log, NULL);
    weir_log_set_level(WEIR_LOG_TRACE);
    assert_int_equal(weir_embedded_create(how, &embedded), 0);
    assert_int_equal(weir_logging_add(weir_embedded_pipeline(embedded), options), 0);
    logged.text[0] = '\0';
    return embedded;
}

static void release_inbound(weir_embedded *embedded)
{
    weir_msg *msg = weir_embedded_read_inbound(embedded);

    assert_non_null(msg); /* it was passed on */
    weir_msg_release(msg);
}

TEST(logging, logs_a_lifecycle)
{
    weir_embedded *embedded =
        open_with(WEIR_EMBEDDED_OPTIONS(.register_later = true, .connect_later = true), NULL);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_address there, here;

    assert_int_equal(weir_address_parse("192.0.2.1:80", &there), 0);
    assert_int_equal(weir_address_parse("[::1]:1234", &here), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    weir_channel_connect(channel, &there, &here, NULL);
    weir_embedded_run(embedded);
    assert_logged("REGISTERED\nCONNECT: 192.0.2.1:80, from [::1]:1234\nACTIVE\n");
    weir_channel_close(channel, NULL);
    weir_embedded_run(embedded);
    assert_logged("CLOSE\nINACTIVE\nUNREGISTERED\n");
    weir_embedded_release(embedded);
}

TEST(logging, logs_bind_disconnect_and_deregister)
{
    weir_embedded *embedded =
        open_with(WEIR_EMBEDDED_OPTIONS(.connect_later = true, .has_disconnect = true), NULL);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_address here;

    assert_int_equal(weir_address_parse("127.0.0.1:8007", &here), 0);
    weir_channel_bind(channel, &here, NULL);
    weir_embedded_run(embedded);
    assert_non_null(strstr(logged.text, "BIND: 127.0.0.1:8007\n"));
    weir_channel_connect(channel, &here, NULL, NULL);
    weir_channel_disconnect(channel, NULL);
    weir_channel_deregister(channel, NULL);
    weir_embedded_run(embedded);
    assert_non_null(strstr(logged.text, "CONNECT: 127.0.0.1:8007\n"));
    assert_non_null(strstr(logged.text, "DISCONNECT\n"));
    assert_non_null(strstr(logged.text, "DEREGISTER\n"));
    weir_embedded_release(embedded);
}

TEST(logging, logs_a_half_closure)
{
    weir_embedded *embedded = open_with(NULL, NULL);

    weir_channel_shutdown_output(weir_embedded_channel(embedded), NULL);
    assert_non_null(strstr(logged.text, "SHUTDOWN OUTPUT\nEVENT: output-closed\n"));
    weir_embedded_release(embedded);
}

TEST(logging, dumps_reads_and_writes)
{
    weir_embedded *embedded = open_with(NULL, NULL);
    weir_msg *msg;

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("0123456789abcdefgh\n", 19)),
                     0);
    assert_logged("READ: 19 B\n"
                  "00000000  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n"
                  "00000010  67 68 0a                                          |gh.|\n"
                  "READ COMPLETE\n");
    release_inbound(embedded);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("x", 1)), 0);
    assert_logged("WRITE: 1 B\n"
                  "00000000  78                                                |x|\n"
                  "FLUSH\n");
    msg = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_msg_size(msg), 1);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(logging, dumps_composites_across_their_parts_and_from_where_they_are_read)
{
    weir_embedded *embedded = open_with(NULL, NULL);
    weir_composite *composite = NULL;

    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("xab", 3)), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes("c", 1)), 0);
    assert_int_equal(weir_composite_skip(composite, 1), 0);
    assert_int_equal(weir_embedded_write_one_inbound(embedded, weir_composite_msg(composite)), 0);
    assert_logged("READ: 3 B\n"
                  "00000000  61 62 63                                          |abc|\n");
    release_inbound(embedded);
    weir_embedded_release(embedded);
}

TEST(logging, dumps_at_most_dump_max_bytes)
{
    weir_embedded *embedded = open_with(NULL, WEIR_LOGGING_OPTIONS(.dump_max = 1));

    assert_int_equal(weir_embedded_write_one_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_logged("READ: 3 B\n"
                  "00000000  61                                                |a|\n"
                  "and 2 B more\n");
    weir_embedded_release(embedded);

    embedded = open_with(NULL, WEIR_LOGGING_OPTIONS(.dump = WEIR_OFF));
    assert_int_equal(weir_embedded_write_one_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_int_equal(weir_embedded_write_one_inbound(embedded, feed_bytes("", 0)), 0);
    assert_logged("READ: 3 B\nREAD: 0 B\n");
    weir_embedded_release(embedded);
}

TEST(logging, logs_other_messages_by_type_and_size)
{
    static const weir_msg_type type = {.name = "letter", .destroy = NULL};
    weir_embedded *embedded = open_with(NULL, NULL);
    weir_msg letter;

    weir_msg_init(&letter, &type);
    assert_int_equal(weir_embedded_write_one_inbound(embedded, &letter), 0);
    assert_logged("READ: letter of 8 B\n");
    assert_ptr_equal(weir_embedded_read_inbound(embedded), &letter);
    weir_embedded_release(embedded);
}

TEST(logging, logs_the_length_of_files)
{
    weir_embedded *embedded = open_with(NULL, NULL);
    int file = memfd_create("weir-logging", MFD_CLOEXEC);
    weir_file_range *range = NULL;

    assert_int_equal(ftruncate(file, 700), 0);
    assert_int_equal(weir_file_range_create(file, 200, 500, WEIR_FILE_RANGE_CLOSE, &range), 0);
    weir_channel_write(weir_embedded_channel(embedded), weir_file_range_msg(range), NULL);
    assert_logged("WRITE: file_range of 500 B\n");
    weir_embedded_release(embedded);
}

TEST(logging, logs_events_errors_and_writability)
{
    weir_embedded *embedded = open_with(NULL, NULL);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);
    char text[128];

    weir_channel_fire_event(weir_embedded_channel(embedded),
                            weir_msg_retain(weir_event_output_closed()));
    (void)snprintf(text, sizeof(text), "EVENT: %s\n", weir_event_output_closed()->type->name);
    assert_logged(text);
    weir_pipeline_fire_error(pipeline, WEIR_EMALFORMED, "it is nonsense");
    assert_non_null(
        strstr(logged.text, "ERROR: WEIR_EMALFORMED (malformed data): it is nonsense\n"));
    assert_int_equal(weir_embedded_take_error(embedded), WEIR_EMALFORMED);
    weir_embedded_release(embedded);

    embedded = open_with(NULL, NULL);
    assert_int_equal(weir_channel_set_user_writable(weir_embedded_channel(embedded), 1, false), 0);
    weir_embedded_run(embedded);
    assert_logged("WRITABILITY CHANGED: not writable\n");
    assert_int_equal(weir_channel_set_user_writable(weir_embedded_channel(embedded), 1, true), 0);
    weir_embedded_run(embedded);
    assert_logged("WRITABILITY CHANGED: writable\n");
    weir_embedded_release(embedded);
}

TEST(logging, has_a_level_and_a_name_and_logs_the_channel)
{
    weir_embedded *embedded =
        open_with(NULL, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_INFO, .name = "front"));
    char channel[128];

    weir_log_set_level(WEIR_LOG_INFO);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_logged("FLUSH\n");
    assert_int_equal(logged.level, WEIR_LOG_INFO);
    assert_string_equal(logged.subsystem, "front");
    assert_string_equal(logged.object, weir_channel_format(weir_embedded_channel(embedded), channel,
                                                           sizeof(channel)));
    weir_log_set_level(WEIR_LOG_WARN);
    assert_int_equal(weir_embedded_write_one_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_logged("");
    release_inbound(embedded);
    weir_embedded_release(embedded);
}

TEST(logging, rejects_invalid_options)
{
    weir_embedded *embedded = open_with(NULL, NULL);
    weir_pipeline *pipeline = weir_embedded_pipeline(embedded);

    assert_int_equal(weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_OFF)),
                     -EINVAL);
    assert_int_equal(
        weir_logging_add(pipeline,
                         WEIR_LOGGING_OPTIONS(.name = "a name of more than thirty-one bytes")),
        -ENAMETOOLONG);
    assert_int_equal(weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.dump = 2)), -EINVAL);
    assert_int_equal(weir_pipeline_count(pipeline), 1);
    weir_embedded_release(embedded);
}

TEST(logging, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        weir_embedded *embedded = NULL;
        weir_msg *msg = feed_bytes("abc", 3);
        int err;

        weir_log_set(on_log, NULL);
        weir_log_set_level(WEIR_LOG_TRACE);
        logged.text[0] = '\0';
        assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
        test_memory_fail_at(n);
        err = weir_logging_add(weir_embedded_pipeline(embedded), NULL);
        if (err == 0)
            (void)weir_embedded_write_inbound(embedded, msg);
        else
            weir_msg_release(msg);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
        if (err < 0)
            assert_int_equal(err, -ENOMEM);
    }
}
