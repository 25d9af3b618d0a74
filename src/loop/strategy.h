/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a loop looks for work before it sleeps, where it is to decide that itself: by credit.
 *
 * Time passes and credit grows, by 1/500 of it; a look that finds nothing costs what it took; one
 * that finds something earns what a sleep is worth. A loop looks when it can afford a whole look,
 * or while it keeps finding something and is not too deep in debt. So looking in vain takes 0.2 %
 * of the time and what the successful looks have earned: idle loops look no more than that, and
 * busy ones all the time. Never finding anything - the one who would bring it runs on the same CPU
 * - is noticed by the same sum.
 */
#ifndef WEIR_LOOP_STRATEGY_H
#define WEIR_LOOP_STRATEGY_H

#include <weir/base.h>

#define WEIR__ADAPTIVE_LIMIT_NS weir_us(50)
#define WEIR__ADAPTIVE_CREDIT_NS weir_us(50)

typedef struct weir__adaptive {
    int64_t limit_ns;      /* of one look */
    int64_t hit_credit_ns; /* what one that found something earns */
    int64_t credit_ns;
    int64_t accrued_until_ns; /* until then time has brought credit */
    bool hit;                 /* the last look found something */
} weir__adaptive;

void weir__adaptive_init(weir__adaptive *adaptive, int64_t limit_ns, int64_t hit_credit_ns,
                         int64_t now_ns);

/* How long to look now; 0 = not at all. */
int64_t weir__adaptive_limit(weir__adaptive *adaptive, int64_t now_ns);

/* A look took so long, and found something or did not. */
void weir__adaptive_record(weir__adaptive *adaptive, int64_t spent_ns, bool hit);

#endif
