/* SPDX-License-Identifier: Apache-2.0 */
#include "support/transport/embedded_threads.h"

#include <weir/buf.h>

#include "os/thread.h"
#include "support/test.h"

struct shared_setup {
    int (*add)(weir_pipeline *pipeline, void *shared);
    void *shared;
};

static void talk(void *arg)
{
    const struct shared_setup *shared_setup = arg;
    weir_embedded *embedded = NULL;

    if (weir_embedded_create(NULL, &embedded) < 0)
        return;
    if (shared_setup->add(weir_embedded_pipeline(embedded), shared_setup->shared) == 0)
        for (int i = 0; i < EMBEDDED_ROUNDS; i++) {
            weir_buf *buf;

            if (weir_buf_create_from("hello", 5, &buf) == 0)
                (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        }
    weir_embedded_release(embedded);
}

void embedded_threads_run(int (*add)(weir_pipeline *pipeline, void *shared), void *shared)
{
    struct shared_setup shared_setup = {.add = add, .shared = shared};
    weir__thread threads[EMBEDDED_THREADS];

    for (int i = 0; i < EMBEDDED_THREADS; i++)
        assert_int_equal(weir__thread_start("talker", talk, &shared_setup, &threads[i]), 0);
    for (int i = 0; i < EMBEDDED_THREADS; i++)
        weir__thread_join(&threads[i]);
}
