/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What transports know of a message with descriptors: how far it has been sent.
 */
#ifndef WEIR_BUFFER_DESCRIPTORS_H
#define WEIR_BUFFER_DESCRIPTORS_H

#include <weir/descriptors.h>

/*
 * Copies those that are still to be sent: all that were not taken, or none, if they have gone out
 * with the first of the bytes. Returns how many.
 */
size_t weir__descriptors_to_send(const weir_descriptors *descriptors,
                                 int ret_numbers[WEIR_DESCRIPTORS_MAX]);

/* They have gone out. */
void weir__descriptors_sent(weir_descriptors *descriptors);

#endif
