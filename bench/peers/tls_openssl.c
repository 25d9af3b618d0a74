/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL in memory: the cost of the server side alone; clients in the same process are not
 * counted. No sockets and no system calls, only SSL_read and SSL_write: the limit of any server on
 * OpenSSL.
 *
 * The cases are those of tls/cases.h. The memory of an idle client is what OpenSSL has allocated.
 */
#include <malloc.h>
#include <string.h>

#include "support/bench.h"
#include "tls/crowd.h"
#include "tls/identity.h"

enum { PIECE = 16384 };

struct pair {
    tls_line client;
    SSL *server;
    BIO *server_end; /* the server's, once there is one */
    bool asked;
    bool answered;
};

struct limit {
    tls_lines lines;
    SSL_CTX *context;
    struct pair *pairs;
    size_t count;
    size_t answer;
    bool stay;           /* clients do not leave when they were answered */
    int64_t server_ns;   /* what servers have used */
    size_t server_bytes; /* what they hold */
};

/* ---- the server's end ---- */

static int64_t thread_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
}

static void server_accept(struct limit *limit, struct pair *pair)
{
    pair->server = SSL_new(limit->context);
    bench_require(pair->server != NULL, "SSL_new");
    SSL_set_bio(pair->server, pair->server_end, pair->server_end);
    pair->server_end = NULL;
    SSL_set_accept_state(pair->server);
}

static void server_leave(struct pair *pair)
{
    SSL_shutdown(pair->server);
    SSL_free(pair->server);
    pair->server = NULL;
}

static void server_answer(const struct limit *limit, struct pair *pair)
{
    static const char bytes[PIECE];

    for (size_t sent = 0; sent < limit->answer; sent += PIECE) {
        size_t rest = limit->answer - sent;
        int piece = rest < PIECE ? (int)rest : PIECE;

        bench_require(SSL_write(pair->server, bytes, piece) == piece, "SSL_write");
    }
}

static void server_go_on(struct limit *limit, struct pair *pair)
{
    char request[PIECE];
    int got, error;

    if (pair->server_end != NULL)
        server_accept(limit, pair);
    if (pair->server == NULL)
        return;
    got = SSL_read(pair->server, request, sizeof(request));
    error = SSL_get_error(pair->server, got);
    if (error == SSL_ERROR_NONE)
        server_answer(limit, pair);
    else if (error == SSL_ERROR_ZERO_RETURN)
        server_leave(pair);
    else
        bench_require(error == SSL_ERROR_WANT_READ, "SSL_read");
}

static void servers_go_on(struct limit *limit)
{
    size_t held = mallinfo2().uordblks;
    int64_t began_ns = thread_cpu_ns();

    for (size_t i = 0; i < limit->count; i++)
        server_go_on(limit, &limit->pairs[i]);
    limit->server_ns += thread_cpu_ns() - began_ns;
    limit->server_bytes += mallinfo2().uordblks - held;
}

/* ---- the client's ---- */

static void client_come(struct limit *limit, struct pair *pair)
{
    BIO *end;

    bench_require(BIO_new_bio_pair(&end, 0, &pair->server_end, 0) == 1, "BIO_new_bio_pair");
    tls_line_open_bio(&pair->client, &limit->lines, end);
    pair->asked = pair->answered = false;
}

static void client_ask(struct pair *pair)
{
    static const char request[TLS_REQUEST_SIZE];

    tls_line_send(&pair->client, request, sizeof(request));
    pair->asked = true;
}

static void client_go_on(struct limit *limit, struct pair *pair)
{
    char answer[PIECE];

    if (pair->answered || !tls_line_shake(&pair->client, &limit->lines))
        return;
    if (!pair->asked)
        client_ask(pair);
    pair->answered = tls_line_receive(&pair->client, answer, sizeof(answer)) > 0;
    if (pair->answered && !limit->stay)
        tls_line_end(&pair->client);
}

static bool clients_go_on(struct limit *limit)
{
    bool all_answered = true;

    for (size_t i = 0; i < limit->count; i++) {
        client_go_on(limit, &limit->pairs[i]);
        all_answered = all_answered && limit->pairs[i].answered;
    }
    return all_answered;
}

/* ---- all of them ---- */

static void all_come(struct limit *limit)
{
    for (size_t i = 0; i < limit->count; i++)
        client_come(limit, &limit->pairs[i]);
    while (!clients_go_on(limit))
        servers_go_on(limit);
}

static void all_leave(struct limit *limit)
{
    for (size_t i = 0; i < limit->count; i++) {
        SSL_free(limit->pairs[i].server);
        tls_line_close(&limit->pairs[i].client);
    }
}

static void visit_once(struct limit *limit)
{
    all_come(limit);
    servers_go_on(limit);
    all_leave(limit);
}

static void talk_once(struct limit *limit)
{
    for (size_t i = 0; i < limit->count; i++)
        client_ask(&limit->pairs[i]);
    servers_go_on(limit);
    if (limit->answer > PIECE)
        return;
    for (size_t i = 0; i < limit->count; i++) {
        limit->pairs[i].answered = false;
        client_go_on(limit, &limit->pairs[i]);
        bench_require(limit->pairs[i].answered, "the answer");
    }
}

/* One more, who comes first, brings the ticket for the others. */
static void get_ticket(struct limit *limit)
{
    size_t count = limit->count;

    limit->count = 1;
    visit_once(limit);
    limit->count = count;
}

static void limit_open(struct limit *limit, bench_round *round, int64_t clients)
{
    bool resumed = bench_setting(round, "resumed", 0) != 0;
    bool tickets = bench_setting(round, "tickets", 0) != 0 || resumed;

    *limit = (struct limit){.count = (size_t)bench_setting(round, "clients", clients)};
    limit->pairs = bench_alloc(limit->count, sizeof(*limit->pairs));
    limit->context = tls_identity_server(tickets);
    limit->answer = TLS_REQUEST_SIZE;
    tls_lines_init(&limit->lines, bench_setting(round, "version", 13), tickets);
    get_ticket(limit);
    limit->lines.resumes = resumed;
}

static void limit_close(struct limit *limit)
{
    tls_lines_deinit(&limit->lines);
    SSL_CTX_free(limit->context);
    bench_free(limit->pairs);
}

/* Does it again and again for as long as the round says. */
static void measure(struct limit *limit, bench_round *round, void (*once)(struct limit *limit))
{
    int64_t warm_ns = bench_setting(round, "warmup_ms", 40) * 1000000;
    int64_t duration_ns = bench_setting(round, "ms", 200) * 1000000;
    int64_t end_ns = bench_now_ns() + warm_ns, times = 0;

    while (bench_now_ns() < end_ns)
        once(limit);
    limit->server_ns = 0;
    end_ns = bench_now_ns() + duration_ns;
    for (; bench_now_ns() < end_ns; times++)
        once(limit);
    bench_report(round, "ns", (double)limit->server_ns / (double)(times * (int64_t)limit->count));
}

/* ---- the cases ---- */

static void visit_case(bench_round *round)
{
    struct limit limit;

    bench_pin(bench_cpu(1));
    limit_open(&limit, round, 16);
    measure(&limit, round, visit_once);
    limit_close(&limit);
    bench_pin(-1);
}

static void talk_case(bench_round *round)
{
    int64_t answer = bench_setting(round, "answer", 0);
    struct limit limit;

    bench_setting(round, "file", 0); /* always from memory */
    bench_pin(bench_cpu(1));
    limit_open(&limit, round, 64);
    limit.stay = true;
    all_come(&limit);
    if (answer > 0)
        limit.answer = (size_t)answer;
    for (size_t i = 0; answer > 0 && i < limit.count; i++) /* nobody copies so much once more */
        SSL_set0_wbio(limit.pairs[i].server, BIO_new(BIO_s_null()));
    measure(&limit, round, talk_once);
    all_leave(&limit);
    limit_close(&limit);
    bench_pin(-1);
}

static void memory_case(bench_round *round)
{
    struct limit limit;

    limit_open(&limit, round, 1000);
    limit.stay = true;
    limit.server_bytes = 0;
    all_come(&limit);
    bench_report(round, "bytes", (double)limit.server_bytes / (double)limit.count);
    all_leave(&limit);
    limit_close(&limit);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        {"visit", visit_case}, {"talk", talk_case}, {"memory", memory_case}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
