/* SPDX-License-Identifier: Apache-2.0 */
/*
 * xoshiro256**, seeded by splitmix64, and the seed of the process.
 *
 * Threads use different streams of one seed: the n-th thread to ask gets the n-th stream, so a
 * program whose threads ask in the same order behaves the same with the same WEIR_SEED.
 */
#include "os/random.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <weir/random.h>

#include "base/log.h"
#include "os/clock.h"
#include "os/thread.h"
#include "os/virtual_os.h"

/* Product of two 64-bit numbers; an extension of gcc and clang. */
__extension__ typedef unsigned __int128 product;

#define GOLDEN_RATIO UINT64_C(0x9e3779b97f4a7c15)

static weir__once seed_once = WEIR__ONCE_INIT;
static uint64_t process_seed;
static _Atomic uint64_t streams;

static uint64_t splitmix_next(uint64_t *state)
{
    uint64_t z = *state += GOLDEN_RATIO;

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

void weir__random_init(weir__random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix_next(&seed);
}

uint64_t weir__random_next(weir__random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/*
 * Lemire's method: the high half of next * limit is uniform once the 2^64 mod limit smallest low
 * halves are rejected. That remainder is below `limit`, so the division is rarely needed.
 */
uint64_t weir__random_below(weir__random *random, uint64_t limit)
{
    product scaled = (product)weir__random_next(random) * limit;

    assert(limit > 0);
    if ((uint64_t)scaled < limit) {
        uint64_t remainder = -limit % limit;

        while ((uint64_t)scaled < remainder)
            scaled = (product)weir__random_next(random) * limit;
    }
    return (uint64_t)(scaled >> 64);
}

int weir__random_parse_seed(const char *text, uint64_t *ret_seed)
{
    unsigned long long seed;
    char *end;

    errno = 0;
    seed = strtoull(text, &end, 0);
    if (errno != 0 || end == text || *end != '\0')
        return -EINVAL;
    *ret_seed = seed;
    return 0;
}

static void choose_process_seed(void)
{
    const char *text = getenv("WEIR_SEED");

    if (text != NULL && weir__random_parse_seed(text, &process_seed) == 0)
        return;
    if (text != NULL)
        weir__warn("random", NULL, "WEIR_SEED ignored, not a 64-bit number: %s", text);
    /* Fails in a sandbox or early in the boot. The time is sufficient: nothing here is secret. */
    if (getrandom(&process_seed, sizeof(process_seed), GRND_NONBLOCK) != sizeof(process_seed))
        process_seed = (uint64_t)weir__monotonic_now();
}

uint64_t weir__random_process_seed(void)
{
    weir__once_run(&seed_once, choose_process_seed);
    return process_seed;
}

weir__random *weir__random_thread(void)
{
    static _Thread_local weir__random generator;
    static _Thread_local bool seeded;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->random();
    if (!seeded) {
        uint64_t stream = atomic_fetch_add_explicit(&streams, 1, memory_order_relaxed);

        weir__random_init(&generator, weir__random_process_seed() ^ (stream * GOLDEN_RATIO));
        seeded = true;
    }
    return &generator;
}

void weir_random_bytes(void *ret_bytes, size_t length)
{
    weir__random *generator = weir__random_thread();
    uint8_t *to = ret_bytes;

    while (length > 0) {
        uint64_t number = weir__random_next(generator);
        size_t count = length < sizeof(number) ? length : sizeof(number);

        memcpy(to, &number, count);
        to += count;
        length -= count;
    }
}
