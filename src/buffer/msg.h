/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to messages, where the library knows more about them than weir/msg.h does.
 */
#ifndef WEIR_BUFFER_MSG_H
#define WEIR_BUFFER_MSG_H

#include <weir/msg.h>

/*
 * True if the caller has the only reference: it may write in place. The argument is "sole" in
 * src/base/refcount.h. Acquire: what earlier holders did to the message happens before what the
 * caller does.
 */
static inline bool weir__msg_is_sole(const weir_msg *msg)
{
    return __atomic_load_n(&msg->refs, __ATOMIC_ACQUIRE) == 1;
}

/*
 * As weir_msg_retain, without a locked instruction if the count is 1. Only where no other thread
 * can act on behalf of the caller's reference: the message was passed to the caller, which has not
 * lent it to code that might. The argument is "owned" in src/base/refcount.h.
 */
static inline weir_msg *weir__msg_retain_owned(weir_msg *msg)
{
    if (!weir__msg_is_sole(msg))
        return weir_msg_retain(msg);
#ifdef NDEBUG
    __atomic_store_n(&msg->refs, 2u, __ATOMIC_RELAXED);
#else
    assert(__atomic_exchange_n(&msg->refs, 2u, __ATOMIC_RELAXED) == 1 &&
           "weir__msg_retain_owned: another thread has changed the count");
#endif
    return msg;
}

#endif
