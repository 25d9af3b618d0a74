/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/options.h - initializer macros of options.
 *
 * Every options struct begins with its size and has an initializer macro of the same name. The
 * macro yields the address of a struct with the given members; all others are 0, which is their
 * default:
 *
 *      weir_group_create(WEIR_GROUP_OPTIONS(.threads = 4), &group);
 *
 *      weir_group_options options = *WEIR_GROUP_OPTIONS(.threads = 4);
 *
 * The address is valid as long as that of a compound literal, in C++ until the end of the full
 * expression. C++20 requires members in the order of their declaration. Older C++ has no designated
 * initializers: there the macro takes no arguments.
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

/* An element of a table with the given members, without warnings about the others. Not for C++
 * before C++20. */
#ifdef __cplusplus
#define WEIR_ELEMENT(type, ...) \
    type                        \
    {                           \
        __VA_ARGS__             \
    }
#else
#define WEIR_ELEMENT(type, ...) \
    {                           \
        __VA_ARGS__             \
    }
#endif

#endif
