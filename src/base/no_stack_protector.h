/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WEIR__NO_STACK_PROTECTOR: for hot functions that need no stack protector.
 *
 * The compiler protects every function that passes the address of a local variable to a call. This
 * costs about six instructions, and detects nothing where no such variable is an array and the
 * callee writes one object of its type. Functions with an array on the stack are never marked.
 */
#ifndef WEIR_BASE_NO_STACK_PROTECTOR_H
#define WEIR_BASE_NO_STACK_PROTECTOR_H

#include <weir/base.h>

#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
#define WEIR__NO_STACK_PROTECTOR __attribute__((no_stack_protector))
#endif
#endif

#ifndef WEIR__NO_STACK_PROTECTOR
#define WEIR__NO_STACK_PROTECTOR
#endif

#endif
