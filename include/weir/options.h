/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/options.h - how options are passed.
 *
 * Every options struct begins with its size and has an initializer macro named after it. The macro
 * gives the address of a struct whose other members are zero, which is the default of each:
 *
 *      weir_group_create(WEIR_GROUP_OPTIONS(.threads = 4), &group);
 *
 *      weir_group_options options = *WEIR_GROUP_OPTIONS(.threads = 4);
 *
 * The address is valid as long as a compound literal's, in C++ until the end of the full
 * expression. C++20 takes members in the order of their declaration; before C++20 there are no
 * designators, and the macro takes no arguments.
 */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#ifdef __GNUC__
#pragma GCC system_header /* g++ warns about members that a designated initializer leaves out */
#endif

#include <stddef.h>

#ifdef __cplusplus
template <typename type> static inline const type *weir__address_of(const type &options)
{
    return &options;
}
#if __cplusplus >= 202002L
#define WEIR_OPTIONS(type, ...) weir__address_of(type{.size = sizeof(type), __VA_ARGS__})
#else
template <typename type> static inline type weir__default_options()
{
    type options = type();

    options.size = sizeof(type);
    return options;
}
#define WEIR_OPTIONS(type, ...) weir__address_of(weir__default_options<type>(__VA_ARGS__))
#endif
#else
#define WEIR_OPTIONS(type, ...) (&(const type){.size = sizeof(type), __VA_ARGS__})
#endif

#endif
