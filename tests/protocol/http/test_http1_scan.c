/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "protocol/http/http1_scan.h"
#include "support/test.h"

#define LENGTH 200

static const weir__http1_scanner *portable(void)
{
    const weir__http1_scanner *scanner = weir__http1_scanners;

    while (scanner[1].name != NULL)
        scanner++;
    return scanner;
}

static const uint8_t *inline_value(const uint8_t *at, const uint8_t *end)
{
    return weir__http1_scan_value(at, end);
}

static const uint8_t *inline_target(const uint8_t *at, const uint8_t *end)
{
    return weir__http1_scan_target(at, end);
}

/* Every byte at every position, in memory that ends with the text. */
static void compare(weir__http1_scan_fn *scan, weir__http1_scan_fn *reference)
{
    for (size_t length = 0; length <= LENGTH; length += length < 70 ? 1 : 13) {
        uint8_t *text = malloc(length + 1), *end = text + 1 + length;

        memset(text, 'x', length + 1);
        assert_ptr_equal(scan(text + 1, end), end);
        for (size_t i = 1; i <= length; i += length < 40 ? 1 : 7)
            for (int byte = 0; byte < 256; byte++) {
                text[i] = (uint8_t)byte;
                assert_ptr_equal(scan(text + 1, end), reference(text + 1, end));
                text[i] = 'x';
            }
        free(text);
    }
}

TEST(http1_scan, gives_the_same_in_every_variant)
{
    for (const weir__http1_scanner *scanner = weir__http1_scanners; scanner->name != NULL;
         scanner++) {
        if (!scanner->is_there())
            continue;
        compare(scanner->value, portable()->value);
        compare(scanner->target, portable()->target);
    }
    compare(inline_value, portable()->value);
    compare(inline_target, portable()->target);
    compare(weir__http1_scan_long_value, portable()->value);
    compare(weir__http1_scan_long_target, portable()->target);
}
