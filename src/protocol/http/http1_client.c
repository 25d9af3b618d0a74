/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http1.h>

#include <errno.h>

int weir_http1_client_add(weir_pipeline *pipeline, const weir_http1_options *options)
{
    (void)pipeline;
    (void)options;
    return -ENOTSUP;
}
