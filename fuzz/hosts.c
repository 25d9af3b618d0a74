/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts file parser: it returns at most as many addresses as there is room for, all of them
 * valid, and independent of preceding and following lines.
 */
#include <stdlib.h>
#include <string.h>

#include "resolver/hosts_file.h"

#define MAX 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static size_t find(const char *text, size_t size, const char *host, weir_address *found)
{
    size_t count = weir__hosts_find_in(text, size, host, found, MAX);

    expect(count <= MAX);
    for (size_t i = 0; i < count; i++) {
        int family = weir_address_family(&found[i]);

        expect(family == AF_INET || family == AF_INET6);
        expect(weir_address_port(&found[i]) == 0);
    }
    return count;
}

/* A line prepended to the input is found first. */
static void expect_ours(const uint8_t *data, size_t size)
{
    static const char ours[] = "192.0.2.250 x host.test # ours\n";
    char *text = malloc(sizeof(ours) - 1 + size);
    weir_address found[MAX], address;

    expect(text != NULL);
    memcpy(text, ours, sizeof(ours) - 1);
    memcpy(text + sizeof(ours) - 1, data, size);
    expect(find(text, sizeof(ours) - 1 + size, "host.test", found) >= 1);
    expect(weir_address_parse("192.0.2.250:0", &address) == 0);
    expect(weir_address_equal(&found[0], &address));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weir_address found[MAX];

    (void)find((const char *)data, size, "host.test", found);
    (void)find((const char *)data, size, "x.", found);
    expect_ours(data, size);
    return 0;
}
