/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step of a handshake on another executor. The session goes with it, and comes back with it: if
 * the handler has gone meanwhile, it ends there. The bytes that it works on stay in the decoder as
 * well, and are skipped when it is known how many it has taken.
 */
#include <weir/error.h>
#include <weir/memory.h>

#include "tls/tls.h"

struct job {
    weir__tls_session *session;
    weir__tls_io io;
    size_t length; /* of io.in, at first */
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

    job->result = job->session->engine->handshake(job->session, &job->io);
    return NULL;
}

/* At once: who hears how it went may remove the handler, and what is left then is passed on. */
static void skip_taken(weir_ctx *ctx, const struct job *job)
{
    if (job->io.in == NULL)
        return;
    weir__tls_of(ctx)->taken = job->length - weir_buf_readable(job->io.in);
    weir_decoder_resume(ctx); /* still awaits the job: what is behind is kept */
}

static void on_back(weir_ctx *ctx, int err, void *nothing, void *arg)
{
    struct job *job = arg;
    weir__tls *tls;
    weir_buf *out;

    (void)nothing;
    if (ctx == NULL) {
        job->session->engine->session_release(job->session);
        free_job(job);
        return;
    }
    if (err < 0) /* nobody has done it */
        (void)work(job);
    tls = weir__tls_of(ctx);
    tls->session = job->session;
    skip_taken(ctx, job);
    tls->awaits = WEIR__TLS_NOTHING;
    out = job->io.out;
    job->io.out = NULL;
    err = job->result;
    free_job(job);
    if (tls->stage == WEIR__TLS_SHAKING)
        weir__tls_stepped(ctx, err, out);
    else
        weir_buf_release(out); /* it has been given up meanwhile */
    weir__tls_release_input(ctx);
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
    if (weir_ctx_offload(ctx, tls->offload, work, on_back, job) < 0) {
        free_job(job);
        return false;
    }
    tls->session = NULL;
    tls->awaits = WEIR__TLS_JOB;
    return true;
}
