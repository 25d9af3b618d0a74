/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/error.h - error codes.
 *
 * Functions that can fail return 0 or a negative int: -errno for errors of the system, one of the
 * codes below for errors of weir. The two ranges do not overlap.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* XX(name without WEIR_, number, text). Numbers are part of the ABI and never reused. */
#define WEIR_ERROR_MAP(XX)                                                                \
    XX(ECANCELED, -10001, "operation cancelled")                                          \
    XX(EREJECTED, -10002, "executor is shutting down or has terminated")                  \
    XX(EFULL, -10003, "queue is full")                                                    \
    XX(ECLOSED, -10004, "channel is closed")                                              \
    XX(EWRONGTHREAD, -10005, "called on the wrong thread")                                \
    XX(ENOOWNER, -10006, "manual executor has no owner thread")                           \
    XX(ECOMPLETED, -10007, "promise is already completed")                                \
    XX(EABANDONED, -10008, "promise was released without being completed")                \
    XX(ETERMINATED, -10009, "executor has terminated")                                    \
    XX(EBOUNDS, -10010, "index or length out of bounds")                                  \
    XX(EREBUILT, -10011, "descriptor lost when the I/O backend was rebuilt")              \
    XX(ETRUNCATED, -10012, "file ended before the end of the range")                      \
    XX(ENOHOST, -10013, "unknown host, or host without addresses")                        \
    XX(ELOOKUP, -10014, "temporary failure of the name lookup")                           \
    XX(ETOOMANY, -10015, "too many channels for a thread per channel")                    \
    XX(ETOOLONG, -10016, "length exceeds the limit")                                      \
    XX(EMALFORMED, -10017, "malformed data")                                              \
    XX(ENOPROGRESS, -10018, "decoder made no progress: it consumed no bytes")             \
    XX(EREPLY, -10019, "server replied with an error")                                    \
    XX(ETLS, -10020, "TLS failed")                                                        \
    XX(ETLSREFUSED, -10021, "peer rejected the TLS connection")                           \
    XX(EUNTRUSTED, -10022, "peer certificate is not trusted")                             \
    XX(ECUTOFF, -10023, "connection closed without TLS close_notify, possibly truncated") \
    XX(ENOTTLS, -10024, "peer does not speak TLS")                                        \
    XX(ESIM, -10025, "simulated run failed")

enum weir_error {
#define WEIR_ERROR_ENUM(name, number, text) WEIR_##name = number,
    WEIR_ERROR_MAP(WEIR_ERROR_ENUM)
#undef WEIR_ERROR_ENUM
};

/*
 * The name of a code: "WEIR_EFULL", "ENOMEM" for -ENOMEM, "OK" for 0, "EUNKNOWN" for any other
 * value.
 * Thread: any.
 */
WEIR_API const char *weir_error_name(int err);

/*
 * A description of a code, without a full stop. Never NULL; a constant string.
 * Thread: any.
 */
WEIR_API const char *weir_error_text(int err);

#ifdef __cplusplus
}
#endif

#endif
