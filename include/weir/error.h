/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/error.h - what a negative return value means.
 *
 * A function that can fail returns 0 or a negative int: -errno where the system refused, one of the
 * codes below where weir did. Ours lie beyond the range of errno, so the two never meet.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The only list of codes: XX(name without WEIR_, number, text). Numbers are ABI, never reused. */
#define WEIR_ERROR_MAP(XX)                                                                        \
    XX(ECANCELED, -10001, "the operation was cancelled and will never run")                       \
    XX(EREJECTED, -10002, "the executor takes no more tasks: it is shutting down or has ended")   \
    XX(EFULL, -10003, "the queue is full")                                                        \
    XX(ECLOSED, -10004, "the channel is closed")                                                  \
    XX(EWRONGTHREAD, -10005, "called on a thread that may not make this call")                    \
    XX(ENOOWNER, -10006, "the manual executor has no owner thread yet")                           \
    XX(ECOMPLETED, -10007, "the promise was completed before")                                    \
    XX(EABANDONED, -10008, "the promise was released by its last owner and never completed")      \
    XX(ETERMINATED, -10009, "the executor has ended")                                             \
    XX(EBOUNDS, -10010, "beyond the bytes that are there")                                        \
    XX(EREBUILT, -10011, "the I/O backend had to begin anew and lost this descriptor")            \
    XX(ETRUNCATED, -10012, "the file ended before the range that was to be sent")                 \
    XX(ENOHOST, -10013, "there is no such host, or it has no address")                            \
    XX(ELOOKUP, -10014, "the name could not be looked up now; trying again later may help")       \
    XX(ETOOMANY, -10015, "too many channels: each has a thread of its own, and there is a bound") \
    XX(ETOOLONG, -10016, "longer than the limit")                                                 \
    XX(EMALFORMED, -10017, "the bytes make no sense in this protocol")                            \
    XX(ENOPROGRESS, -10018, "the decoder went on without taking a byte")                          \
    XX(EREPLY, -10019, "the server answered with an error")                                       \
    XX(ETLS, -10020, "TLS has failed")                                                            \
    XX(ETLSREFUSED, -10021, "the peer refuses to go on with TLS")                                 \
    XX(EUNTRUSTED, -10022, "the peer's certificate cannot be believed")                           \
    XX(ECUTOFF, -10023, "the connection ended without the end of TLS: it may have been cut off")  \
    XX(ENOTTLS, -10024, "what has come is not TLS")

enum weir_error {
#define WEIR_ERROR_ENUM(name, number, text) WEIR_##name = number,
    WEIR_ERROR_MAP(WEIR_ERROR_ENUM)
#undef WEIR_ERROR_ENUM
};

/*
 * The symbol of a code: "WEIR_EFULL", "ENOMEM" for -ENOMEM, "OK" for 0, "EUNKNOWN" for what is
 * neither ours nor the system's.
 * Thread: any.
 */
WEIR_API const char *weir_error_name(int err);

/*
 * The meaning of a code in words, without a full stop; never NULL. The text is constant.
 * Thread: any.
 */
WEIR_API const char *weir_error_text(int err);

#ifdef __cplusplus
}
#endif

#endif
