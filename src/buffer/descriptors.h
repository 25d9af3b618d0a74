/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending state of a message with descriptors, for transports.
 */
#ifndef WEIR_BUFFER_DESCRIPTORS_H
#define WEIR_BUFFER_DESCRIPTORS_H

#include <weir/descriptors.h>

/*
 * Copies the descriptors to send: those that were not taken, or none if they were already sent with
 * the first bytes. Returns their number.
 */
size_t weir__descriptors_to_send(const weir_descriptors *descriptors,
                                 int ret_numbers[WEIR_DESCRIPTORS_MAX]);

/* Marks the descriptors as sent. */
void weir__descriptors_sent(weir_descriptors *descriptors);

#endif
