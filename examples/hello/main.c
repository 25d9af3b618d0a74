/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A first program: work on a group's threads, a promise for its result, a timer, a clean shutdown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static int count_primes(void *arg, int status, void **ret_value)
{
    int limit = *(const int *)arg, count = 0;

    if (status < 0)
        return status; /* cancelled */
    for (int n = 2; n < limit; n++) {
        int divisor = 2;

        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        count += divisor * divisor > n;
    }
    *ret_value = (void *)(intptr_t)count;
    return 0;
}

static void on_late(void *arg, int status)
{
    (void)arg;
    if (status == 0)
        printf("still counting on %s\n", weir_executor_name(weir_executor_current()));
}

int main(void)
{
    weir_group *workers = NULL;
    weir_promise *primes = NULL, *late = NULL;
    int limit = 3000000;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 2), &workers);

    if (!err)
        err = weir_group_submit(workers, count_primes, &limit, &primes);
    if (!err)
        err = weir_group_schedule(workers, weir_ms(50), on_late, NULL, &late);
    if (!err)
        err = weir_promise_sync(primes, weir_seconds(60));
    if (!err)
        printf("%ld primes below %d\n", (long)(intptr_t)weir_promise_value(primes), limit);
    if (late)
        weir_promise_cancel(late); /* too late if it has run */
    if (err)
        fprintf(stderr, "hello: %s\n", weir_error_text(err));
    weir_promise_release(late); /* NULL is ignored, here and below */
    weir_promise_release(primes);
    weir_group_release(workers); /* shuts down and joins its threads */
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
