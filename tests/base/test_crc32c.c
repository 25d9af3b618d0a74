/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The examples of RFC 3720, appendix B.4.
 */
#include "base/crc32c.h"

#include <string.h>

#include "support/test.h"

TEST(crc32c, is_that_of_rfc_3720)
{
    uint8_t bytes[32];

    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(weir__crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(weir__crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(weir__crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
    assert_int_equal(weir__crc32c(0, "123456789", 9), 0xe3069283);
}

TEST(crc32c, can_be_computed_incrementally)
{
    assert_int_equal(weir__crc32c(0, "", 0), 0);
    assert_int_equal(weir__crc32c(weir__crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}
