/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptive strategy: how long a loop busy-polls before it sleeps, by credit.
 *
 * Credit grows with time, at 1/500 of it. A poll that finds nothing costs the time it took; one
 * that finds work earns the cost of a saved sleep. A loop polls if it can afford a whole poll, or
 * while polls find work and the debt is limited. So futile polls take 0.2 % of the time plus what
 * successful ones earned: idle loops poll no more than that, busy ones all the time. If the peer
 * runs on the same CPU, polls find nothing and the credit runs out.
 */
#ifndef WEIR_LOOP_STRATEGY_H
#define WEIR_LOOP_STRATEGY_H

#include <weir/base.h>

#define WEIR__ADAPTIVE_LIMIT_NS weir_us(50)
#define WEIR__ADAPTIVE_CREDIT_NS weir_us(50)

typedef struct weir__adaptive {
    int64_t limit_ns;      /* of one poll */
    int64_t hit_credit_ns; /* earned by a poll that found work */
    int64_t credit_ns;
    int64_t accrued_until_ns; /* time up to which credit was added */
    bool hit;                 /* the last poll found work */
} weir__adaptive;

void weir__adaptive_init(weir__adaptive *adaptive, int64_t limit_ns, int64_t hit_credit_ns,
                         int64_t now_ns);

/* Returns how long to poll now; 0 = not at all. */
int64_t weir__adaptive_limit(weir__adaptive *adaptive, int64_t now_ns);

/* Records the duration of a poll and whether it found work. */
void weir__adaptive_record(weir__adaptive *adaptive, int64_t spent_ns, bool hit);

#endif
