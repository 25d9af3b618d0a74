/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling somebody of a leak.
 */
#ifndef WEIR_BUFFER_LEAK_REPORT_H
#define WEIR_BUFFER_LEAK_REPORT_H

#include "buffer/leak_record.h"

/* To the listener, or else to the log; `others` are further ones of the same place. */
void weir__leak_report(const weir__leak_facts *facts, size_t others);

#endif
