/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/systemd.h - what a service manager hands over and wants to hear, by systemd's protocol:
 * sockets that were opened before the program was started (sd_listen_fds(3)), and how it fares
 * (sd_notify(3)). It needs no library of systemd's, and whoever speaks the protocol will do:
 * weir_server_restart is such a one.
 *
 * Most programs need none of this: with `.inherit` of weir/server.h a server takes what it is
 * handed, and says when it is ready.
 */
#ifndef WEIR_SYSTEMD_H
#define WEIR_SYSTEMD_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SYSTEMD_NAME_SIZE 256 /* the longest name, and the 0 behind it */

/* A descriptor that was handed over. */
typedef struct weir_systemd_listener {
    int descriptor;                    /* closed on exec from now on */
    char name[WEIR_SYSTEMD_NAME_SIZE]; /* FileDescriptorName= of the unit; "unknown" if none is said
                                        */
} weir_systemd_listener;

/*
 * Writes up to `capacity` of the descriptors that this process was handed by LISTEN_PID, LISTEN_FDS
 * and LISTEN_FDNAMES, and returns how many there are; 0 if they were meant for another process.
 * With `forget` the variables are unset when all were written, so that the next call finds none,
 * and NOTIFY_SOCKET is set to that of the manager if we were started by weir_server_restart:
 * getenv in other threads does not like that. What makes no sense is logged.
 * Thread: any; with `forget` best the only one.  Gives: descriptors.  Fails: -EINVAL (no numbers,
 * or too large ones), -EBADF (a descriptor is not open).
 */
WEIR_API int weir_systemd_listeners(weir_systemd_listener *ret_listeners, size_t capacity,
                                    bool forget);

/*
 * Tells the manager something: "READY=1", "STOPPING=1", "STATUS=a sentence", "WATCHDOG=1", several
 * of them with a line break between. Returns 1, or 0 if there is nobody to tell (NOTIFY_SOCKET). A
 * process that replaces another says to that one that it is ready, which tells the manager.
 * Thread: any.  Fails: -EINVAL (NOTIFY_SOCKET is no address), -ECONNREFUSED, -EMFILE, ...
 */
WEIR_API int weir_systemd_notify(const char *state);

/*
 * How often the manager wants to hear "WATCHDOG=1", at the least: tell it twice as often. Returns
 * 1, or 0 if it does not want to.
 * Thread: any.  Fails: -EINVAL (WATCHDOG_USEC is no number).
 */
WEIR_API int weir_systemd_watchdog(int64_t *ret_interval_ns);

#ifdef __cplusplus
}
#endif

#endif
