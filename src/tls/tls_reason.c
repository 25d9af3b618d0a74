/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_reason.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/log.h>

#include "tls/openssl/openssl.h"

static _Thread_local char reason[WEIR__TLS_REASON_SIZE];

void weir__tls_set_reason(const char *text)
{
    (void)snprintf(reason, sizeof(reason), "%s", text);
}

int weir__tls_fail(int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    return err;
}

int weir__tls_fail_add(int err)
{
    weir__tls_set_reason(err == -EINVAL ? "invalid options: see the log" : weir_error_text(err));
    return err;
}

int weir__tls_log_reason(bool is_server, int err)
{
    if (err == -ENOMEM)
        weir__tls_set_reason(weir_error_text(err));
    weir_log_write(WEIR_LOG_WARN, "tls", is_server ? "server" : "client", "%s", reason);
    return err;
}

const char *weir_tls_reason(void)
{
    return reason;
}
