/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of somebody else's: it fails unless the library it runs with is the one whose headers
 * it was compiled with.
 */
#include <stdio.h>
#include <string.h>

#include <weir/weir.h>

int main(void)
{
    char expected[32];

    snprintf(expected, sizeof(expected), "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR,
             WEIR_VERSION_PATCH);
    printf("headers %s, library %s\n", expected, weir_version());
    return strcmp(expected, weir_version()) != 0;
}
