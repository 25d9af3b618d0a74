/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants are measured: a wake-up from another core costs about 50 us on virtual machines,
 * and a peer that has to be woken itself answers within that time.
 */
#include "loop/strategy.h"

#define ACCRUAL 500 /* nanoseconds per nanosecond of credit */
#define CREDIT_MAX_NS weir_us(200)
#define DEBT_MAX_NS weir_us(200)

void weir__adaptive_init(weir__adaptive *adaptive, int64_t limit_ns, int64_t hit_credit_ns,
                         int64_t now_ns)
{
    *adaptive = (weir__adaptive){
        .limit_ns = limit_ns,
        .hit_credit_ns = hit_credit_ns,
        .accrued_until_ns = now_ns,
    };
}

/* The maximum is at least one whole poll, or a long limit could never be afforded. */
static void add_credit(weir__adaptive *adaptive, int64_t earned_ns)
{
    int64_t most_ns = adaptive->limit_ns > CREDIT_MAX_NS ? adaptive->limit_ns : CREDIT_MAX_NS;
    int64_t room_ns = most_ns - adaptive->credit_ns;

    adaptive->credit_ns += earned_ns < room_ns ? earned_ns : room_ns;
}

int64_t weir__adaptive_limit(weir__adaptive *adaptive, int64_t now_ns)
{
    int64_t accrued_ns = (now_ns - adaptive->accrued_until_ns) / ACCRUAL;

    adaptive->accrued_until_ns += accrued_ns * ACCRUAL;
    add_credit(adaptive, accrued_ns);
    if (adaptive->credit_ns >= adaptive->limit_ns)
        return adaptive->limit_ns;
    return adaptive->hit && adaptive->credit_ns > -DEBT_MAX_NS ? adaptive->limit_ns : 0;
}

/* A poll that exceeded its limit was preempted: only the limit is charged. */
void weir__adaptive_record(weir__adaptive *adaptive, int64_t spent_ns, bool hit)
{
    adaptive->hit = hit;
    if (hit)
        add_credit(adaptive, adaptive->hit_credit_ns);
    else
        adaptive->credit_ns -= spent_ns < adaptive->limit_ns ? spent_ns : adaptive->limit_ns;
}
