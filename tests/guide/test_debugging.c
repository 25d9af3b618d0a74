/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snippets of docs/guide/25-debugging.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "guide/guide_fixture.h"

/* doc:begin level */
/* Sets the log level from the environment variable LOG, for example LOG=DEBUG. */
static void set_log_level(void)
{
    const char *name = getenv("LOG");

    for (int level = WEIR_LOG_TRACE; name != NULL && level <= WEIR_LOG_OFF; level++)
        if (strcmp(name, weir_log_level_name((enum weir_log_level)level)) == 0)
            weir_log_set_level((enum weir_log_level)level);
}
/* doc:end */

TEST(debugging, the_log_level_comes_from_the_environment)
{
    assert_int_equal(setenv("LOG", "DEBUG", 1), 0);
    set_log_level();
    assert_true(weir_log_enabled(WEIR_LOG_DEBUG));
    assert_false(weir_log_enabled(WEIR_LOG_TRACE));
    assert_int_equal(setenv("LOG", "loud", 1), 0);
    set_log_level();
    assert_true(weir_log_enabled(WEIR_LOG_DEBUG));
    assert_int_equal(unsetenv("LOG"), 0);
    weir_log_set_level(WEIR_LOG_WARN);
}

/* doc:begin pipeline */
static void print_pipeline(weir_channel *channel, FILE *to)
{
    char text[256];

    weir_pipeline_dump(weir_channel_pipeline(channel), text, sizeof(text));
    fprintf(to, "%s\n", text); /* head <-> pcap <-> logging <-> echo <-> tail */
}
/* doc:end */

/* doc:begin observe */
static int observe(weir_pipeline *pipeline, weir_pcap *pcap)
{
    int err = weir_pcap_add(pipeline, pcap); /* before TLS: what is on the wire */

    if (!err) /* after TLS: what the handlers see */
        err = weir_logging_add(pipeline, WEIR_LOGGING_OPTIONS(.level = WEIR_LOG_DEBUG));
    return err;
}
/* doc:end */

static const weir_handler echo = {.name = "echo"};

TEST(debugging, a_pipeline_is_observed_and_printed)
{
    char path[] = "/tmp/weir-debugging-XXXXXX", *text = NULL;
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;
    weir_pcap *pcap = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    int file = mkstemp(path);

    assert_non_null(to);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_pcap_create(WEIR_PCAP_OPTIONS(.path = path), &pcap), 0);
    assert_int_equal(observe(pipeline, pcap), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &echo, NULL), 0);
    print_pipeline(weir_embedded_channel(embedded), to);
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, "head <-> pcap <-> logging <-> echo <-> tail\n");
    free(text);
    weir_embedded_release(embedded);
    weir_pcap_release(pcap);
    (void)unlink(path);
}

/* doc:begin leaks */
static void on_leak(const weir_leak_report *report, void *to)
{
    fprintf(to, "leak of a %s of %zu bytes\n%s", report->type, report->bytes, report->text);
}
/* doc:end */

TEST(debugging, a_leak_is_reported_to_a_listener)
{
    weir_leak_scope scope;
    weir_buf *buf = NULL;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    assert_non_null(to);
    weir_leak_set_listener(on_leak, to);
    weir_leak_scope_begin(&scope);
    assert_int_equal(weir_buf_create(512, 0, &buf), 0);
    assert_int_equal(weir_leak_scope_end(&scope), 1);
    weir_leak_set_listener(NULL, NULL);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(text, "leak of a buf of 512 bytes\n512 bytes were not released: "));
    free(text);
    weir_buf_release(buf);
}
