/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling somebody of a leak.
 */
#ifndef WEIR_BUFFER_LEAK_REPORT_H
#define WEIR_BUFFER_LEAK_REPORT_H

#include "buffer/leak_record.h"

/*
 * Of what the search is about, one of each place that was not reported: to the listener, or else to
 * the log. Returns how many records it is about.
 */
size_t weir__leak_report_all(weir__leak_search *search);

#endif
