/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of addresses.
 */
#include <weir/address.h>

#include <errno.h>

#include "support/memory.h"
#include "support/test.h"

static weir_address address_of(const char *text)
{
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

TEST(addresses, are_copied_and_reference_counted)
{
    weir_address given[] = {address_of("192.0.2.1:80"), address_of("[2001:db8::1]:81")};
    weir_addresses *addresses = NULL, *kept;
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_int_equal(weir_addresses_create(given, 2, &addresses), 0);
    given[0] = given[1];
    kept = weir_addresses_retain(addresses);
    assert_ptr_equal(kept, addresses);
    weir_addresses_release(addresses);
    assert_int_equal(kept->count, 2);
    weir_address_format(&kept->addresses[0], text, sizeof(text));
    assert_string_equal(text, "192.0.2.1:80");
    weir_address_format(&kept->addresses[1], text, sizeof(text));
    assert_string_equal(text, "[2001:db8::1]:81");
    weir_addresses_release(kept);
    weir_addresses_release(NULL);
}

TEST(addresses, fail_if_empty_or_without_memory)
{
    const weir_address given = address_of("192.0.2.1:80");
    weir_addresses *addresses = NULL;

    assert_int_equal(weir_addresses_create(&given, 0, &addresses), -EINVAL);
    test_memory_fail_at(1);
    assert_int_equal(weir_addresses_create(&given, 1, &addresses), -ENOMEM);
    test_memory_fail_at(0);
    assert_null(addresses);
}
