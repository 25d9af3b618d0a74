/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reporting leaks.
 */
#ifndef WEIR_BUFFER_LEAK_REPORT_H
#define WEIR_BUFFER_LEAK_REPORT_H

#include "buffer/leak_record.h"

/*
 * Reports one matching record per unreported site, to the listener or the log. Returns the number
 * of matching records.
 */
size_t weir__leak_report_all(weir__leak_search *search);

#endif
