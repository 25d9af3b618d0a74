/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS server that a user of weir writes: bootstrap, the handler of TLS, one that answers. An
 * answer that is as long as the request is the request; what is longer comes from memory, or with
 * file=1 from a file, which is read while it is sent.
 *
 * Settings besides those of tls/cases.h: those of executor/weir_group.h. version=0 is a server
 * without TLS.
 */
#include "echo/competitor.h"
#include "executor/weir_group.h"

#include <sys/mman.h>
#include <unistd.h>

#include <weir/address.h>
#include <weir/buf.h>
#include <weir/chunks.h>
#include <weir/pipeline.h>
#include <weir/server.h>
#include <weir/tls.h>

#include "echo/handlers.h"
#include "tls/crowd.h"
#include "tls/identity.h"

static weir_group_options configured;
static bool configured_tls, configured_tickets, configured_file;
static size_t answer_size; /* 0: as the request */

static weir_tls_context *context;
static weir_buf *long_answer;
static int file;

static void server_configure(bench_round *round)
{
    group_configure(&configured, round);
    configured_tls = bench_setting(round, "version", 13) != 0;
    configured_tickets = bench_setting(round, "tickets", 0) + bench_setting(round, "resumed", 0);
    configured_file = bench_setting(round, "file", 0) != 0;
    answer_size = (size_t)bench_setting(round, "answer", 0);
}

/* ---- long answers ---- */

static weir_msg *make_answer(void)
{
    weir_chunks *chunks;
    weir_buf *copy;

    if (configured_file) {
        bench_require(weir_chunks_create_file(file, 0, (int64_t)answer_size, 0, 0, &chunks) == 0,
                      "weir_chunks_create_file");
        return weir_chunks_msg(chunks);
    }
    bench_require(weir_buf_duplicate(long_answer, &copy) == 0, "weir_buf_duplicate");
    return weir_buf_msg(copy);
}

static void answer_on_read(weir_ctx *ctx, weir_msg *msg)
{
    size_t *received = weir_ctx_state(ctx);

    *received += weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
    for (; *received >= TLS_REQUEST_SIZE; *received -= TLS_REQUEST_SIZE)
        weir_write(ctx, make_answer(), NULL);
}

static void answer_on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

/* What answers come from. */
static void prepare_answers(void)
{
    file = memfd_create("answer", MFD_CLOEXEC);
    bench_require(file >= 0 && ftruncate(file, (off_t)answer_size) == 0, "memfd_create");
    bench_require(weir_buf_wrap_static(bench_alloc(1, answer_size), answer_size, &long_answer) == 0,
                  "weir_buf_wrap_static");
}

static int add_answers(weir_pipeline *pipeline)
{
    static const weir_handler handler = {
        .name = "answer",
        .state_size = sizeof(size_t),
        .read = answer_on_read,
        .read_complete = answer_on_read_complete,
    };
    int err = configured_file ? weir_chunked_writing_add(pipeline) : 0;

    return err == 0 ? weir_pipeline_add_last(pipeline, &handler, NULL) : err;
}

/* ---- the server ---- */

static int init_child(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = configured_tls ? weir_tls_add(pipeline, context) : 0;

    (void)user_data;
    if (err != 0)
        return err;
    return answer_size > 0 ? add_answers(pipeline) : echo_handlers_add(pipeline, 1);
}

static void create_context(void)
{
    int err = weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = tls_identity_certificate(),
                                 .key_pem = tls_identity_key(),
                                 .resumption = configured_tickets ? WEIR_ON : WEIR_OFF),
        &context);

    bench_require(err == 0, "weir_tls_server_create");
}

static uint16_t port_of(weir_server *server)
{
    weir_address address;

    bench_require(weir_channel_local_address(weir_server_listener(server, 0), &address) == 0,
                  "weir_channel_local_address");
    return weir_address_port(&address);
}

/* The loop's thread stays alone, as in echo/echo_weir.c. */
static void server_run(int cpu)
{
    weir_group *group = group_start(&configured, cpu);
    weir_server *server;
    char place[WEIR_ADDRESS_TEXT_SIZE];
    int err;

    create_context();
    if (answer_size > 0)
        prepare_answers();
    echo_server_place(place, sizeof(place));
    err = weir_server_start(
        WEIR_SERVER_OPTIONS(.workers = group, .address = place, .init_child = init_child), &server);
    bench_require(err == 0, "weir_server_start");
    echo_server_announce_port(port_of(server));
    pthread_exit(NULL);
}

#include "tls/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {TLS_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
