/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes that wait: for on_sni, and for steps on another executor.
 */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/tls.h>
#include <weir/tls_context.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/memory.h"
#include "support/tls/pki.h"
#include "support/tls/tls_pair.h"
#include "tls/tls.h"

/* ---- choosing ---- */

static weir_tls_sni_request *chosen_later;
static weir_tls_context *other;
static char asked_for[64];

static void note_hello(const weir_tls_sni_request *request)
{
    (void)snprintf(asked_for, sizeof(asked_for), "%s '%s'",
                   weir_tls_sni_request_server_name(request), weir_tls_sni_request_alpn(request));
}

static void accept_now(weir_tls_sni_request *request, void *user_data)
{
    note_hello(request);
    weir_tls_sni_request_accept(request, user_data);
}

static void refuse_now(weir_tls_sni_request *request, void *user_data)
{
    weir_tls_sni_request_reject(request, user_data);
}

static void choose_later(weir_tls_sni_request *request, void *user_data)
{
    (void)user_data;
    note_hello(request);
    chosen_later = request;
}

static void open_other(void)
{
    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->other.certificate,
                                                        .key_pem = pki()->other.key),
                               &other),
        0);
}

static void prepare(struct tls_pair *pair, weir_tls_sni_fn *choose, void *user_data)
{
    tls_pair_prepare(
        pair,
        &(const struct tls_pair_options){
            .server_context = WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                       .key_pem = pki()->server.key,
                                                       .on_sni = choose, .on_sni_data = user_data),
            .client_context = WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = "a,b"),
            .client = WEIR_TLS_OPTIONS(.server_name = "other.test")});
}

static void begin(struct tls_pair *pair)
{
    tls_pair_begin(pair);
    tls_pair_run(pair);
}

TEST(tls_handshake, asks_the_chooser_what_a_client_gets)
{
    struct tls_pair pair;

    open_other();
    prepare(&pair, accept_now, other);
    begin(&pair);
    assert_string_equal(asked_for, "other.test 'a,b'");
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
    weir_tls_context_release(other);
}

TEST(tls_handshake, gives_the_context_that_was_asked_if_none_is_chosen)
{
    struct tls_pair pair;

    prepare(&pair, accept_now, NULL);
    begin(&pair); /* which has a certificate of another name */
    assert_events(&pair.client.events,
                  "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    tls_pair_close(&pair);
}

TEST(tls_handshake, waits_for_a_choice)
{
    struct tls_pair pair;

    open_other();
    prepare(&pair, choose_later, NULL);
    pair.piece = 7;
    begin(&pair);
    tls_side_write(&pair.server, tls_pair_bytes(3), "w");
    weir_channel_flush(pair.server.channel);
    assert_events(&pair.server.events, "");
    weir_tls_sni_request_accept(chosen_later, other);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) w=ok");
    assert_int_equal(pair.client.received, 3);
    tls_pair_close(&pair);
    weir_tls_context_release(other);
}

TEST(tls_handshake, rejects_a_client_in_the_choosers_words)
{
    static char words[] = "we do not know that one";
    struct tls_pair pair;

    prepare(&pair, refuse_now, words);
    begin(&pair);
    assert_int_equal(event_log_count(&pair.server.events, "handshake(WEIR_ETLS)"), 1);
    assert_int_equal(event_log_count(&pair.server.events, "error(WEIR_ETLS)"), 1);
    assert_string_equal(pair.server.detail, words);
    assert_events(&pair.client.events,
                  "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
    assert_non_null(strstr(pair.client.detail, "unrecognized name"));
    tls_pair_close(&pair);
}

TEST(tls_handshake, rejects_a_client_if_a_clients_context_was_chosen)
{
    struct tls_pair pair;

    assert_int_equal(weir_tls_client_create(NULL, &other), 0);
    prepare(&pair, accept_now, other);
    begin(&pair);
    assert_string_equal(pair.server.detail, "the chosen context is not a server's");
    tls_pair_close(&pair);
    weir_tls_context_release(other);
}

TEST(tls_handshake, waits_for_a_choice_no_longer_than_a_handshake_may)
{
    struct tls_pair pair;

    prepare(&pair, choose_later, NULL);
    begin(&pair);
    tls_pair_advance(&pair, weir_seconds(10));
    assert_events(&pair.server.events, "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    weir_tls_sni_request_accept(chosen_later, NULL); /* too late, and no harm */
    weir_embedded_run(pair.server.embedded);
    assert_events(&pair.server.events, "");
    tls_pair_close(&pair);
}

TEST(tls_handshake, survives_a_choice_after_its_handler_has_been_removed)
{
    struct tls_pair pair;

    prepare(&pair, choose_later, NULL);
    begin(&pair);
    assert_int_equal(weir_pipeline_remove(pair.server.pipeline, "tls", NULL), 0);
    weir_tls_sni_request_reject(chosen_later, NULL);
    weir_embedded_run(pair.server.embedded);
    assert_events(&pair.server.events, "handshake(WEIR_ECLOSED)");
    tls_pair_close(&pair);
}

static void prepare_half(struct tls_pair *pair)
{
    tls_pair_prepare(
        pair,
        &(const struct tls_pair_options){
            .server_context =
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                         .key_pem = pki()->server.key, .on_sni = choose_later),
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
}

/* It was kept back for the handshake; those behind would wait for ever. */
TEST(tls_handshake, reports_of_the_end_of_the_input_when_it_is_removed)
{
    struct tls_pair pair;

    prepare_half(&pair);
    begin(&pair);
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "");
    assert_int_equal(weir_pipeline_remove(pair.server.pipeline, "tls", NULL), 0);
    assert_events(&pair.server.events, "handshake(WEIR_ECLOSED) input-closed");
    weir_tls_sni_request_accept(chosen_later, NULL);
    tls_pair_close(&pair);
}

TEST(tls_handshake, reports_nothing_of_the_kind_when_it_has_been_given_up)
{
    struct tls_pair pair;

    prepare_half(&pair);
    begin(&pair);
    weir_embedded_end_input(pair.server.embedded);
    tls_pair_advance(&pair, weir_seconds(10));
    assert_events(&pair.server.events, "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    weir_tls_sni_request_accept(chosen_later, NULL);
    tls_pair_close(&pair);
}

TEST(tls_handshake, survives_a_choice_after_the_channel_has_gone)
{
    struct tls_pair pair;

    prepare(&pair, choose_later, NULL);
    begin(&pair);
    weir_channel_abort(pair.server.channel, NULL);
    weir_embedded_run(pair.server.embedded);
    assert_events(&pair.server.events, "handshake(WEIR_ECLOSED) inactive");
    tls_pair_close(&pair);
    weir_tls_sni_request_accept(chosen_later, NULL);
}

static void assert_hears(struct tls_pair *pair)
{
    tls_side_send_text(&pair->client, "hello");
    tls_pair_run(pair);
    assert_int_equal(event_log_count(&pair->server.events, "read(hello)"), 1);
}

TEST(tls_handshake, takes_a_choice_that_was_made_while_its_channel_had_no_loop)
{
    struct tls_pair pair;

    open_other();
    prepare(&pair, choose_later, NULL);
    begin(&pair);
    weir_channel_deregister(pair.server.channel, NULL);
    weir_embedded_run(pair.server.embedded);
    weir_tls_sni_request_accept(chosen_later, other);
    weir_embedded_run(pair.server.embedded);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.server.events, "handshake(ok)"), 1);
    assert_hears(&pair);
    tls_pair_close(&pair);
    weir_tls_context_release(other);
}

/* A client that goes on sending is not listened to without end. */
TEST(tls_handshake, keeps_no_more_than_it_must_while_it_waits)
{
    struct tls_pair pair;
    unsigned count = 0;

    prepare(&pair, choose_later, NULL);
    begin(&pair);
    while (weir_channel_is_open(pair.server.channel) && count < 1000) {
        (void)weir_embedded_write_inbound(pair.server.embedded, tls_pair_bytes(1000));
        count++;
    }
    assert_in_range(count, 128, 140);
    assert_events(&pair.server.events, "handshake(WEIR_ETOOLONG) error(WEIR_ETOOLONG) inactive");
    weir_tls_sni_request_accept(chosen_later, NULL);
    tls_pair_close(&pair);
}

TEST(tls_handshake, finds_what_a_client_gets_by_its_name)
{
    struct tls_pair pair;

    open_other();
    prepare(&pair, NULL, NULL);
    tls_pair_close(&pair);
    prepare(&pair, NULL, NULL);
    assert_int_equal(weir_tls_context_add_name(pair.server_context, "other.test", other), 0);
    assert_int_equal(weir_pipeline_remove(pair.server.pipeline, "tls", NULL), 0);
    assert_int_equal(weir_tls_add_with(pair.server.pipeline, pair.server_context,
                                       WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.first = true))),
                     0);
    begin(&pair);
    assert_events(&pair.client.events, "handshake(ok)");
    assert_int_equal(event_log_count(&pair.server.events, "handshake(ok)"), 1);
    tls_pair_close(&pair);
    weir_tls_context_release(other);
}

static bool choose_without_memory(unsigned n)
{
    struct tls_pair pair;
    bool failed, begun;

    prepare(&pair, choose_later, NULL);
    chosen_later = NULL;
    test_memory_fail_at(n);
    begun = weir_embedded_register(pair.server.embedded) == 0 &&
            weir_embedded_register(pair.client.embedded) == 0;
    tls_pair_run(&pair);
    if (chosen_later != NULL)
        weir_tls_sni_request_accept(chosen_later, other);
    tls_pair_run(&pair);
    tls_pair_advance(&pair, weir_seconds(10));
    tls_pair_run(&pair);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    if (begun)
        assert_int_equal(event_log_count(&pair.server.events, "handshake("), 1);
    if (!failed)
        assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
    return failed;
}

TEST(tls_handshake, with_a_choice_survives_every_lack_of_memory)
{
    open_other();
    for (unsigned n = 1; choose_without_memory(n); n++)
        ;
    weir_tls_context_release(other);
}

/* ---- offloaded steps ---- */

static weir_group *workers;

static void prepare_offload(struct tls_pair *pair, weir_tls_sni_fn *choose)
{
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        pair, &(const struct tls_pair_options){
                  .server_context =
                      WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                               .key_pem = pki()->server.key, .on_sni = choose),
                  .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .offload = workers),
                  .server = WEIR_TLS_OPTIONS(.offload = workers)});
}

/* Plays until both have written so much down. */
static void await(struct tls_pair *pair, const char *client, const char *server)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (weir__monotonic_now() < deadline_ns &&
           (strlen(pair->client.events.text) < strlen(client) ||
            strlen(pair->server.events.text) < strlen(server))) {
        tls_pair_run(pair);
        (void)sched_yield();
    }
    assert_events(&pair->client.events, client);
    assert_events(&pair->server.events, server);
}

TEST(tls_handshake, may_be_done_offloaded)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    begin(&pair);
    tls_side_send_text(&pair.client, "hello"); /* waits for its end */
    await(&pair, "handshake(ok)", "handshake(ok) read(hello)");
    tls_side_send_text(&pair.server, "you too");
    await(&pair, "read(you too)", "");
    tls_pair_close(&pair);
    end_group(workers);
}

TEST(tls_handshake, may_be_done_offloaded_byte_by_byte)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    pair.piece = 1;
    begin(&pair);
    tls_side_send_text(&pair.client, "hello");
    await(&pair, "handshake(ok)", "handshake(ok) read(hello)");
    tls_pair_close(&pair);
    end_group(workers);
}

TEST(tls_handshake, may_be_offloaded_and_wait_for_a_choice)
{
    struct tls_pair pair;

    prepare_offload(&pair, accept_now);
    begin(&pair);
    tls_side_send_text(&pair.client, "hello");
    await(&pair, "handshake(ok)", "handshake(ok) read(hello)");
    tls_pair_close(&pair);
    end_group(workers);
}

TEST(tls_handshake, is_done_here_if_nobody_else_does_it)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    end_group(weir_group_retain(workers));
    begin(&pair);
    assert_events(&pair.client.events, "handshake(ok)");
    assert_events(&pair.server.events, "handshake(ok)");
    tls_pair_close(&pair);
    weir_group_release(workers);
}

/* All data of the client, and its end, arrive while the last step is offloaded. */
TEST(tls_handshake, offloaded_keeps_the_end_of_the_input_behind_what_came_before)
{
    struct tls_pair pair;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        &pair,
        &(const struct tls_pair_options){
            .server = WEIR_TLS_OPTIONS(.offload = workers),
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
    begin(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(200), NULL);
    weir_channel_close(pair.client.channel, NULL);
    await(&pair, "handshake(ok) inactive", "handshake(ok) read(200) ended input-closed");
    tls_pair_close(&pair);
    end_group(workers);
}

static sem_t gate;

static void wait_at_gate(void *arg, int status)
{
    (void)arg;
    (void)status;
    while (sem_wait(&gate) < 0)
        ;
}

/* A client has the right to go on as soon as it has said all of its own part. */
TEST(tls_handshake, offloaded_stops_reading_while_it_waits_for_the_last_step)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct tls_pair pair;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){.server = WEIR_TLS_OPTIONS(.offload = workers)});
    pair.server.is_long = true;
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_side_write(&pair.client, tls_pair_bytes(1000000), NULL);
    weir_channel_flush(pair.client.channel);
    assert_true(tls_pair_transfer(&pair, &pair.client, &pair.server));
    while (!tls_pair_transfer(&pair, &pair.server, &pair.client)) { /* an offloaded step */
        assert_true(weir__monotonic_now() < deadline_ns);
        weir_embedded_run(pair.server.embedded);
    }
    assert_int_equal(weir_execute(weir_group_next(workers), wait_at_gate, NULL), 0);
    while (tls_pair_transfer(&pair, &pair.client, &pair.server))
        ;
    assert_events(&pair.server.events, "");
    assert_true(weir_channel_is_open(pair.server.channel));
    assert_int_equal(sem_post(&gate), 0);
    while (pair.server.received < 1000000 && weir__monotonic_now() < deadline_ns) {
        tls_pair_run(&pair);
        (void)sched_yield();
    }
    assert_int_equal(pair.server.received, 1000000);
    assert_int_equal(event_log_count(&pair.server.events, "handshake(ok)"), 1);
    tls_pair_close(&pair);
    end_group(workers);
    (void)sem_destroy(&gate);
}

/* Nothing follows the bytes of the last step, so reading is not paused. */
TEST(tls_handshake, offloaded_keeps_the_end_behind_what_came_before)
{
    struct tls_pair pair;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        &pair,
        &(const struct tls_pair_options){
            .server = WEIR_TLS_OPTIONS(.offload = workers),
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
    pair.is_joined = true;
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_side_write(&pair.client, tls_pair_bytes(200), NULL);
    weir_channel_close(pair.client.channel, NULL);
    assert_true(tls_pair_transfer(&pair, &pair.client, &pair.server));
    while (!tls_pair_transfer(&pair, &pair.server, &pair.client)) /* an offloaded step */
        weir_embedded_run(pair.server.embedded);
    assert_int_equal(weir_execute(weir_group_next(workers), wait_at_gate, NULL), 0);
    tls_pair_run(&pair); /* Finished, 200 bytes and close_notify at once; the end */
    assert_events(&pair.client.events, "handshake(ok) inactive");
    assert_events(&pair.server.events, "");
    assert_int_equal(sem_post(&gate), 0);
    await(&pair, "", "handshake(ok) read(200) ended input-closed");
    tls_pair_close(&pair);
    end_group(workers);
    (void)sem_destroy(&gate);
}

static void open_gate(void *arg, int status)
{
    (void)arg;
    (void)status;
    (void)sem_post(&gate);
}

TEST(tls_handshake, offloaded_is_through_while_its_channel_has_no_loop)
{
    struct tls_pair pair;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){.server = WEIR_TLS_OPTIONS(.offload = workers)});
    tls_pair_begin(&pair);
    assert_true(tls_pair_transfer(&pair, &pair.client, &pair.server));
    assert_int_equal(weir_execute(weir_group_next(workers), open_gate, NULL), 0);
    weir_channel_deregister(pair.server.channel, NULL);
    wait_at_gate(NULL, 0); /* the step has been done by now */
    weir_embedded_run(pair.server.embedded);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    await(&pair, "handshake(ok)", "handshake(ok)");
    assert_hears(&pair);
    tls_pair_close(&pair);
    end_group(workers);
    (void)sem_destroy(&gate);
}

/* Reading was stopped for the work, and goes on while somebody chooses: no further than it may. */
TEST(tls_handshake, offloaded_keeps_no_more_than_it_must_while_it_waits_for_a_choice)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct tls_pair pair;
    unsigned count = 0;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &workers), 0);
    tls_pair_prepare(
        &pair,
        &(const struct tls_pair_options){
            .server_context =
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                         .key_pem = pki()->server.key, .on_sni = choose_later),
            .server = WEIR_TLS_OPTIONS(.offload = workers)});
    chosen_later = NULL;
    tls_pair_begin(&pair);
    assert_int_equal(weir_execute(weir_group_next(workers), wait_at_gate, NULL), 0);
    assert_true(tls_pair_transfer(&pair, &pair.client, &pair.server));
    (void)weir_embedded_write_inbound(pair.server.embedded, tls_pair_bytes(10));
    assert_int_equal(sem_post(&gate), 0);
    while (chosen_later == NULL && weir__monotonic_now() < deadline_ns)
        weir_embedded_run(pair.server.embedded);
    while (weir_channel_is_open(pair.server.channel) && count < 1000) {
        (void)weir_embedded_write_inbound(pair.server.embedded, tls_pair_bytes(1000));
        count++;
    }
    assert_in_range(count, 128, 140);
    assert_events(&pair.server.events, "handshake(WEIR_ETOOLONG) error(WEIR_ETOOLONG) inactive");
    weir_tls_sni_request_accept(chosen_later, NULL);
    tls_pair_close(&pair);
    end_group(workers);
    (void)sem_destroy(&gate);
}

static void remove_tls(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    if (weir_tls_handshake_result(handshake) == 0)
        assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL), 0);
}

/* What it has taken is not passed on, as what it has not is. */
TEST(tls_handshake, offloaded_keeps_what_it_has_taken_when_it_is_removed)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    pair.server.on_handshake = remove_tls;
    begin(&pair);
    await(&pair, "handshake(ok)", "handshake(ok)");
    tls_pair_close(&pair);
    end_group(workers);
}

/* The session comes back to nobody, and ends there. */
TEST(tls_handshake, offloaded_survives_the_removal_of_its_handler)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    assert_int_equal(weir_pipeline_remove(pair.client.pipeline, "tls", NULL), 0);
    await(&pair, "handshake(WEIR_ECLOSED)", "");
    end_group(workers);
    tls_pair_close(&pair);
}

TEST(tls_handshake, offloaded_survives_the_end_of_its_channel)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    weir_channel_abort(pair.client.channel, NULL);
    await(&pair, "handshake(WEIR_ECLOSED) inactive", "");
    end_group(workers);
    tls_pair_close(&pair);
}

TEST(tls_handshake, offloaded_survives_a_close_and_a_timeout)
{
    struct tls_pair pair;

    prepare_offload(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    weir_channel_close(pair.client.channel, NULL);
    weir_embedded_advance(pair.server.embedded, weir_seconds(10));
    await(&pair, "handshake(WEIR_ECLOSED) inactive",
          "handshake(ETIMEDOUT) error(ETIMEDOUT) inactive");
    end_group(workers);
    tls_pair_close(&pair);
}
