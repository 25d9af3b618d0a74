/* SPDX-License-Identifier: Apache-2.0 */
#define OPENSSL_SUPPRESS_DEPRECATED /* a provider would be the way of OpenSSL 3, and long */
#include "sim/programs/openssl_random.h"

#include <openssl/rand.h>

#include <weir/random.h>

static int random_bytes(unsigned char *bytes, int length)
{
    weir_random_bytes(bytes, (size_t)length);
    return 1;
}

static int is_seeded(void)
{
    return 1;
}

void sim_openssl_random_begin(void)
{
    static const RAND_METHOD method = {
        .bytes = random_bytes, .pseudorand = random_bytes, .status = is_seeded};

    (void)RAND_set_rand_method(&method);
}

void sim_openssl_random_end(void)
{
    (void)RAND_set_rand_method(NULL); /* the default */
}
