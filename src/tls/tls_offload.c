/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of a handshake on another executor. The session goes there and comes back with the job; if
 * the handler was removed meanwhile, the session is freed. The job works on a slice of the received
 * bytes; these stay in the decoder too, and are skipped once the job has consumed them.
 */
#include <weir/error.h>
#include <weir/memory.h>

#include "tls/tls.h"

struct job {
    weir__openssl_session *session;
    weir__openssl_io io;
    size_t length; /* of io.in at the start */
    int result;
};

static void free_job(struct job *job)
{
    weir_buf_release(job->io.in);
    weir_buf_release(job->io.out);
    weir_memory_free(job);
}

static void *work(void *arg)
{
    struct job *job = arg;

    job->result = weir__openssl_session_handshake(job->session, &job->io);
    return NULL;
}

/* Before the result is reported: a handler may then remove this one, which passes the rest on. */
static void skip_consumed(weir_ctx *ctx, const struct job *job)
{
    if (job->io.in == NULL)
        return;
    weir__tls_of(ctx)->consumed = job->length - weir_buf_readable(job->io.in);
    weir_decoder_resume(ctx); /* still awaits the job: later bytes stay buffered */
}

static void on_done(weir_ctx *ctx, int err, void *unused, void *arg)
{
    struct job *job = arg;
    weir__tls *tls;
    weir_buf *out;

    (void)unused;
    if (ctx == NULL) {
        weir__openssl_session_release(job->session);
        free_job(job);
        return;
    }
    if (err < 0) /* the job did not run */
        (void)work(job);
    tls = weir__tls_of(ctx);
    tls->session = job->session;
    skip_consumed(ctx, job);
    tls->awaits = WEIR__TLS_AWAITS_NOTHING;
    out = job->io.out;
    job->io.out = NULL;
    err = job->result;
    free_job(job);
    if (tls->stage == WEIR__TLS_HANDSHAKING)
        weir__tls_handshake_step_done(ctx, err, out);
    else
        weir_buf_release(out); /* the connection failed or ended meanwhile */
    weir__tls_resume_input(ctx);
}

static struct job *create_job(weir__tls *tls, weir_buf *in)
{
    struct job *job = weir_memory_alloc(sizeof(*job));

    if (job == NULL)
        return NULL;
    *job = (struct job){.session = tls->session};
    if (in == NULL)
        return job;
    job->length = weir_buf_readable(in);
    if (weir_buf_slice(in, weir_buf_read_index(in), job->length, &job->io.in) == 0)
        return job;
    weir_memory_free(job);
    return NULL;
}

bool weir__tls_offload(weir_ctx *ctx, weir_buf *in)
{
    weir__tls *tls = weir__tls_of(ctx);
    struct job *job = create_job(tls, in);

    if (job == NULL)
        return false;
    if (weir_ctx_offload(ctx, tls->offload, work, on_done, job) < 0) {
        free_job(job);
        return false;
    }
    tls->session = NULL;
    tls->awaits = WEIR__TLS_AWAITS_OFFLOAD;
    return true;
}
