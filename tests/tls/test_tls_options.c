/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalid options of the TLS handlers: each is rejected and named in the log.
 */
#include <weir/tls.h>

#include <errno.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/tls_context.h>

#include "support/executor/log_capture.h"
#include "support/test.h"

static int init(weir_channel *channel, bool is_tls, void *user_data)
{
    (void)channel;
    (void)is_tls;
    (void)user_data;
    return 0;
}

/* The reason of an earlier error would be misleading. */
TEST(tls_options, that_are_invalid_are_the_reason)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    log_capture_start();
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_tls_tickets_create(-2, NULL), -EINVAL);
        assert_non_null(strstr(weir_tls_reason(), "negative"));
        assert_int_equal(i == 0   ? weir_tls_add(pipeline, NULL)
                         : i == 1 ? weir_tls_detect_add(pipeline, NULL)
                                  : weir_tls_hello_add(pipeline, NULL),
                         -EINVAL);
        assert_string_equal(weir_tls_reason(), "invalid options: see the log");
    }
    weir_embedded_release(embedded);
}

TEST(tls_options, that_are_invalid_are_named)
{
    weir_tls_context *client = NULL;
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.verify = WEIR_TLS_VERIFY_NONE), &client),
        0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_options_rejected(weir_tls_add(pipeline, NULL), "no context");
    assert_options_rejected(
        weir_tls_add_with(pipeline, client, WEIR_TLS_OPTIONS(.handshake_timeout_ns = -2)),
        "handshake_timeout_ns is -2");
    assert_options_rejected(
        weir_tls_add_with(pipeline, client, WEIR_TLS_OPTIONS(.close_timeout_ns = -3)),
        "close_timeout_ns is -3");
    assert_options_rejected(
        weir_tls_detect_add(pipeline, WEIR_TLS_DETECT_OPTIONS(.context = client)),
        "no init function");
    assert_options_rejected(
        weir_tls_detect_add(pipeline, WEIR_TLS_DETECT_OPTIONS(.context = client, .init = init)),
        "no server context");
    assert_options_rejected(weir_tls_hello_add(pipeline, NULL), "no on_hello function");
    weir_embedded_release(embedded);
    weir_tls_context_release(client);
}
