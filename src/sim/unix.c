/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network.h"
#include "sim/unix_path.h"
#include <errno.h>
int weir__sim_unix_socket(int kind)
{
    (void)kind;
    return -EPROTONOSUPPORT;
}
static int no(void)
{
    errno = ENOSYS;
    return -1;
}
int weir__sim_path_fchmod(int d, mode_t m)
{
    (void)d;
    (void)m;
    return no();
}
int weir__sim_path_chmod(const char *p, mode_t m)
{
    (void)p;
    (void)m;
    return no();
}
int weir__sim_path_lstat(const char *p, struct stat *s)
{
    (void)p;
    (void)s;
    return no();
}
int weir__sim_path_rename(const char *a, const char *b)
{
    (void)a;
    (void)b;
    return no();
}
int weir__sim_path_link(const char *a, const char *b)
{
    (void)a;
    (void)b;
    return no();
}
int weir__sim_path_unlink(const char *p)
{
    (void)p;
    return no();
}
