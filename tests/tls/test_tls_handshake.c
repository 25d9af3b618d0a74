/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handshakes that wait for somebody: for who chooses what a client gets, and for work that is done
 * elsewhere.
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

static weir_tls_choice *chosen_later;
static weir_tls_context *other;
static char asked_for[64];

static void note_wish(const weir_tls_choice *choice)
{
    (void)snprintf(asked_for, sizeof(asked_for), "%s '%s'", weir_tls_choice_server_name(choice),
                   weir_tls_choice_alpn(choice));
}

static void accept_now(weir_tls_choice *choice, void *user_data)
{
    note_wish(choice);
    weir_tls_choice_accept(choice, user_data);
}

static void refuse_now(weir_tls_choice *choice, void *user_data)
{
    weir_tls_choice_refuse(choice, user_data);
}

static void choose_later(weir_tls_choice *choice, void *user_data)
{
    (void)user_data;
    note_wish(choice);
    chosen_later = choice;
}

static void open_other(void)
{
    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->other.certificate,
                                                        .key_pem = pki()->other.key),
                               &other),
        0);
}

static void prepare(struct duet *duet, weir_tls_choose_fn *choose, void *user_data)
{
    duet_prepare(
        duet,
        &(const struct duet_options){
            .server_context = WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                       .key_pem = pki()->server.key,
                                                       .choose = choose, .choose_data = user_data),
            .client_context = WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .alpn = "a,b"),
            .client = WEIR_TLS_OPTIONS(.server_name = "other.test")});
}

static void begin(struct duet *duet)
{
    duet_begin(duet);
    duet_play(duet);
}

TEST(tls_shaking, asks_the_chooser_what_a_client_gets)
{
    struct duet duet;

    open_other();
    prepare(&duet, accept_now, other);
    begin(&duet);
    assert_string_equal(asked_for, "other.test 'a,b'");
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
    weir_tls_context_release(other);
}

TEST(tls_shaking, gives_the_context_that_was_asked_if_none_is_chosen)
{
    struct duet duet;

    prepare(&duet, accept_now, NULL);
    begin(&duet); /* which has a certificate of another name */
    assert_events(&duet.client.events, "shaken(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    duet_close(&duet);
}

TEST(tls_shaking, waits_for_a_choice)
{
    struct duet duet;

    open_other();
    prepare(&duet, choose_later, NULL);
    duet.piece = 7;
    begin(&duet);
    duet_write(&duet.server, duet_bytes(3), "w");
    weir_channel_flush(duet.server.channel);
    assert_events(&duet.server.events, "");
    weir_tls_choice_accept(chosen_later, other);
    duet_play(&duet);
    assert_events(&duet.server.events, "shaken(ok) w=ok");
    assert_int_equal(duet.client.received, 3);
    duet_close(&duet);
    weir_tls_context_release(other);
}

TEST(tls_shaking, refuses_a_client_in_the_choosers_words)
{
    static char words[] = "we do not know that one";
    struct duet duet;

    prepare(&duet, refuse_now, words);
    begin(&duet);
    assert_int_equal(event_log_count(&duet.server.events, "shaken(WEIR_ETLS)"), 1);
    assert_int_equal(event_log_count(&duet.server.events, "error(WEIR_ETLS)"), 1);
    assert_string_equal(duet.server.detail, words);
    assert_events(&duet.client.events, "shaken(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
    assert_non_null(strstr(duet.client.detail, "unrecognized name"));
    duet_close(&duet);
}

TEST(tls_shaking, refuses_a_client_if_a_clients_context_was_chosen)
{
    struct duet duet;

    assert_int_equal(weir_tls_client_create(NULL, &other), 0);
    prepare(&duet, accept_now, other);
    begin(&duet);
    assert_string_equal(duet.server.detail, "a client's context was chosen");
    duet_close(&duet);
    weir_tls_context_release(other);
}

TEST(tls_shaking, waits_for_a_choice_no_longer_than_a_handshake_may)
{
    struct duet duet;

    prepare(&duet, choose_later, NULL);
    begin(&duet);
    duet_advance(&duet, weir_seconds(10));
    assert_events(&duet.server.events, "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    weir_tls_choice_accept(chosen_later, NULL); /* too late, and no harm */
    weir_embedded_run(duet.server.embedded);
    assert_events(&duet.server.events, "");
    duet_close(&duet);
}

TEST(tls_shaking, survives_a_choice_after_its_handler_has_been_removed)
{
    struct duet duet;

    prepare(&duet, choose_later, NULL);
    begin(&duet);
    assert_int_equal(weir_pipeline_remove(duet.server.pipeline, "tls", NULL), 0);
    weir_tls_choice_refuse(chosen_later, NULL);
    weir_embedded_run(duet.server.embedded);
    assert_events(&duet.server.events, "shaken(WEIR_ECLOSED)");
    duet_close(&duet);
}

static void prepare_half(struct duet *duet)
{
    duet_prepare(
        duet,
        &(const struct duet_options){
            .server_context =
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                         .key_pem = pki()->server.key, .choose = choose_later),
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
}

/* It was kept back for the handshake; those behind would wait for ever. */
TEST(tls_shaking, tells_of_the_end_of_the_input_when_it_is_removed)
{
    struct duet duet;

    prepare_half(&duet);
    begin(&duet);
    weir_embedded_end_input(duet.server.embedded);
    assert_events(&duet.server.events, "");
    assert_int_equal(weir_pipeline_remove(duet.server.pipeline, "tls", NULL), 0);
    assert_events(&duet.server.events, "shaken(WEIR_ECLOSED) input-closed");
    weir_tls_choice_accept(chosen_later, NULL);
    duet_close(&duet);
}

TEST(tls_shaking, tells_nothing_of_the_kind_when_it_has_been_given_up)
{
    struct duet duet;

    prepare_half(&duet);
    begin(&duet);
    weir_embedded_end_input(duet.server.embedded);
    duet_advance(&duet, weir_seconds(10));
    assert_events(&duet.server.events, "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    weir_tls_choice_accept(chosen_later, NULL);
    duet_close(&duet);
}

TEST(tls_shaking, survives_a_choice_after_the_channel_has_gone)
{
    struct duet duet;

    prepare(&duet, choose_later, NULL);
    begin(&duet);
    weir_channel_abort(duet.server.channel, NULL);
    weir_embedded_run(duet.server.embedded);
    assert_events(&duet.server.events, "shaken(WEIR_ECLOSED) inactive");
    duet_close(&duet);
    weir_tls_choice_accept(chosen_later, NULL);
}

static void assert_hears(struct duet *duet)
{
    duet_say(&duet->client, "hello");
    duet_play(duet);
    assert_int_equal(event_log_count(&duet->server.events, "read(hello)"), 1);
}

TEST(tls_shaking, takes_a_choice_that_was_made_while_its_channel_had_no_loop)
{
    struct duet duet;

    open_other();
    prepare(&duet, choose_later, NULL);
    begin(&duet);
    weir_channel_deregister(duet.server.channel, NULL);
    weir_embedded_run(duet.server.embedded);
    weir_tls_choice_accept(chosen_later, other);
    weir_embedded_run(duet.server.embedded);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.server.events, "shaken(ok)"), 1);
    assert_hears(&duet);
    duet_close(&duet);
    weir_tls_context_release(other);
}

/* A client that goes on sending is not listened to without end. */
TEST(tls_shaking, keeps_no_more_than_it_must_while_it_waits)
{
    struct duet duet;
    unsigned count = 0;

    prepare(&duet, choose_later, NULL);
    begin(&duet);
    while (weir_channel_is_open(duet.server.channel) && count < 1000) {
        (void)weir_embedded_write_inbound(duet.server.embedded, duet_bytes(1000));
        count++;
    }
    assert_in_range(count, 128, 140);
    assert_events(&duet.server.events, "shaken(WEIR_ETOOLONG) error(WEIR_ETOOLONG) inactive");
    weir_tls_choice_accept(chosen_later, NULL);
    duet_close(&duet);
}

TEST(tls_shaking, finds_what_a_client_gets_by_its_name)
{
    struct duet duet;

    open_other();
    prepare(&duet, NULL, NULL);
    duet_close(&duet);
    prepare(&duet, NULL, NULL);
    assert_int_equal(weir_tls_context_add_name(duet.server_context, "other.test", other), 0);
    assert_int_equal(weir_pipeline_remove(duet.server.pipeline, "tls", NULL), 0);
    assert_int_equal(weir_tls_add_with(duet.server.pipeline, duet.server_context,
                                       WEIR_TLS_OPTIONS(.place = WEIR_PLACE(.first = true))),
                     0);
    begin(&duet);
    assert_events(&duet.client.events, "shaken(ok)");
    assert_int_equal(event_log_count(&duet.server.events, "shaken(ok)"), 1);
    duet_close(&duet);
    weir_tls_context_release(other);
}

static bool choose_without_memory(unsigned n)
{
    struct duet duet;
    bool failed, begun;

    prepare(&duet, choose_later, NULL);
    chosen_later = NULL;
    test_memory_fail_at(n);
    begun = weir_embedded_register(duet.server.embedded) == 0 &&
            weir_embedded_register(duet.client.embedded) == 0;
    duet_play(&duet);
    if (chosen_later != NULL)
        weir_tls_choice_accept(chosen_later, other);
    duet_play(&duet);
    duet_advance(&duet, weir_seconds(10));
    duet_play(&duet);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    if (begun)
        assert_int_equal(event_log_count(&duet.server.events, "shaken("), 1);
    if (!failed)
        assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
    return failed;
}

TEST(tls_shaking, with_a_choice_survives_every_lack_of_memory)
{
    open_other();
    for (unsigned n = 1; choose_without_memory(n); n++)
        ;
    weir_tls_context_release(other);
}

/* ---- elsewhere ---- */

static weir_group *elsewhere;

static void prepare_offload(struct duet *duet, weir_tls_choose_fn *choose)
{
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &elsewhere), 0);
    duet_prepare(duet,
                 &(const struct duet_options){
                     .server_context =
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key, .choose = choose),
                     .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .offload = elsewhere),
                     .server = WEIR_TLS_OPTIONS(.offload = elsewhere)});
}

/* Plays until both have written so much down. */
static void await(struct duet *duet, const char *client, const char *server)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (weir__monotonic_now() < deadline_ns &&
           (strlen(duet->client.events.text) < strlen(client) ||
            strlen(duet->server.events.text) < strlen(server))) {
        duet_play(duet);
        (void)sched_yield();
    }
    assert_events(&duet->client.events, client);
    assert_events(&duet->server.events, server);
}

TEST(tls_shaking, may_be_done_elsewhere)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    begin(&duet);
    duet_say(&duet.client, "hello"); /* waits for its end */
    await(&duet, "shaken(ok)", "shaken(ok) read(hello)");
    duet_say(&duet.server, "you too");
    await(&duet, "read(you too)", "");
    duet_close(&duet);
    end_group(elsewhere);
}

TEST(tls_shaking, may_be_done_elsewhere_byte_by_byte)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    duet.piece = 1;
    begin(&duet);
    duet_say(&duet.client, "hello");
    await(&duet, "shaken(ok)", "shaken(ok) read(hello)");
    duet_close(&duet);
    end_group(elsewhere);
}

TEST(tls_shaking, may_be_done_elsewhere_and_wait_for_a_choice)
{
    struct duet duet;

    prepare_offload(&duet, accept_now);
    begin(&duet);
    duet_say(&duet.client, "hello");
    await(&duet, "shaken(ok)", "shaken(ok) read(hello)");
    duet_close(&duet);
    end_group(elsewhere);
}

TEST(tls_shaking, is_done_here_if_nobody_else_does_it)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    end_group(weir_group_retain(elsewhere));
    begin(&duet);
    assert_events(&duet.client.events, "shaken(ok)");
    assert_events(&duet.server.events, "shaken(ok)");
    duet_close(&duet);
    weir_group_release(elsewhere);
}

/* All that the client has to say comes while the last step is done elsewhere, and then its end. */
TEST(tls_shaking, elsewhere_keeps_the_end_of_the_input_behind_what_came_before)
{
    struct duet duet;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &elsewhere), 0);
    duet_prepare(
        &duet,
        &(const struct duet_options){
            .server = WEIR_TLS_OPTIONS(.offload = elsewhere),
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
    begin(&duet);
    duet_write(&duet.client, duet_bytes(200), NULL);
    weir_channel_close(duet.client.channel, NULL);
    await(&duet, "shaken(ok) inactive", "shaken(ok) read(200) ended input-closed");
    duet_close(&duet);
    end_group(elsewhere);
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
TEST(tls_shaking, elsewhere_stops_reading_while_it_waits_for_the_last_step)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct duet duet;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &elsewhere), 0);
    duet_prepare(&duet,
                 &(const struct duet_options){.server = WEIR_TLS_OPTIONS(.offload = elsewhere)});
    duet.server.is_long = true;
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    duet_write(&duet.client, duet_bytes(1000000), NULL);
    weir_channel_flush(duet.client.channel);
    assert_true(duet_bring(&duet, &duet.client, &duet.server));
    while (!duet_bring(&duet, &duet.server, &duet.client)) { /* a step, elsewhere */
        assert_true(weir__monotonic_now() < deadline_ns);
        weir_embedded_run(duet.server.embedded);
    }
    assert_int_equal(weir_execute(weir_group_next(elsewhere), wait_at_gate, NULL), 0);
    while (duet_bring(&duet, &duet.client, &duet.server))
        ;
    assert_events(&duet.server.events, "");
    assert_true(weir_channel_is_open(duet.server.channel));
    assert_int_equal(sem_post(&gate), 0);
    while (duet.server.received < 1000000 && weir__monotonic_now() < deadline_ns) {
        duet_play(&duet);
        (void)sched_yield();
    }
    assert_int_equal(duet.server.received, 1000000);
    assert_int_equal(event_log_count(&duet.server.events, "shaken(ok)"), 1);
    duet_close(&duet);
    end_group(elsewhere);
    (void)sem_destroy(&gate);
}

static void open_gate(void *arg, int status)
{
    (void)arg;
    (void)status;
    (void)sem_post(&gate);
}

TEST(tls_shaking, elsewhere_is_through_while_its_channel_has_no_loop)
{
    struct duet duet;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &elsewhere), 0);
    duet_prepare(&duet,
                 &(const struct duet_options){.server = WEIR_TLS_OPTIONS(.offload = elsewhere)});
    duet_begin(&duet);
    assert_true(duet_bring(&duet, &duet.client, &duet.server));
    assert_int_equal(weir_execute(weir_group_next(elsewhere), open_gate, NULL), 0);
    weir_channel_deregister(duet.server.channel, NULL);
    wait_at_gate(NULL, 0); /* the step has been done by now */
    weir_embedded_run(duet.server.embedded);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    await(&duet, "shaken(ok)", "shaken(ok)");
    assert_hears(&duet);
    duet_close(&duet);
    end_group(elsewhere);
    (void)sem_destroy(&gate);
}

/* Reading was stopped for the work, and goes on while somebody chooses: no further than it may. */
TEST(tls_shaking, elsewhere_keeps_no_more_than_it_must_while_it_waits_for_a_choice)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct duet duet;
    unsigned count = 0;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &elsewhere), 0);
    duet_prepare(
        &duet,
        &(const struct duet_options){
            .server_context =
                WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                         .key_pem = pki()->server.key, .choose = choose_later),
            .server = WEIR_TLS_OPTIONS(.offload = elsewhere)});
    chosen_later = NULL;
    duet_begin(&duet);
    assert_int_equal(weir_execute(weir_group_next(elsewhere), wait_at_gate, NULL), 0);
    assert_true(duet_bring(&duet, &duet.client, &duet.server));
    (void)weir_embedded_write_inbound(duet.server.embedded, duet_bytes(10));
    assert_int_equal(sem_post(&gate), 0);
    while (chosen_later == NULL && weir__monotonic_now() < deadline_ns)
        weir_embedded_run(duet.server.embedded);
    while (weir_channel_is_open(duet.server.channel) && count < 1000) {
        (void)weir_embedded_write_inbound(duet.server.embedded, duet_bytes(1000));
        count++;
    }
    assert_in_range(count, 128, 140);
    assert_events(&duet.server.events, "shaken(WEIR_ETOOLONG) error(WEIR_ETOOLONG) inactive");
    weir_tls_choice_accept(chosen_later, NULL);
    duet_close(&duet);
    end_group(elsewhere);
    (void)sem_destroy(&gate);
}

static void remove_tls(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    if (weir_tls_handshake_result(handshake) == 0)
        assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL), 0);
}

/* What it has taken is not passed on, as what it has not is. */
TEST(tls_shaking, elsewhere_keeps_what_it_has_taken_when_it_is_removed)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    duet.server.on_shaken = remove_tls;
    begin(&duet);
    await(&duet, "shaken(ok)", "shaken(ok)");
    duet_close(&duet);
    end_group(elsewhere);
}

/* The session comes back to nobody, and ends there. */
TEST(tls_shaking, elsewhere_survives_the_removal_of_its_handler)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    assert_int_equal(weir_pipeline_remove(duet.client.pipeline, "tls", NULL), 0);
    await(&duet, "shaken(WEIR_ECLOSED)", "");
    end_group(elsewhere);
    duet_close(&duet);
}

TEST(tls_shaking, elsewhere_survives_the_end_of_its_channel)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    weir_channel_abort(duet.client.channel, NULL);
    await(&duet, "shaken(WEIR_ECLOSED) inactive", "");
    end_group(elsewhere);
    duet_close(&duet);
}

TEST(tls_shaking, elsewhere_survives_a_close_and_a_timeout)
{
    struct duet duet;

    prepare_offload(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    weir_channel_close(duet.client.channel, NULL);
    weir_embedded_advance(duet.server.embedded, weir_seconds(10));
    await(&duet, "shaken(WEIR_ECLOSED) inactive", "shaken(ETIMEDOUT) error(ETIMEDOUT) inactive");
    end_group(elsewhere);
    duet_close(&duet);
}
