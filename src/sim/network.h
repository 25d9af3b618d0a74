/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the simulated network.
 *
 * An address belongs to one host; 127.0.0.0/8, ::1 and the wildcard addresses are the caller's own.
 * A link says how two hosts reach each other. Everything that is sent arrives by an event, after
 * the latency of the link.
 */
#ifndef WEIR_SIM_NETWORK_H
#define WEIR_SIM_NETWORK_H

#include <sys/socket.h>
#include <sys/stat.h>

#include "sim/world.h"

typedef struct weir__sim_socket weir__sim_socket;

/* The operations of a kind of socket. Results are those of the system call, or -errno. NULL =
 * -EOPNOTSUPP.
 */
typedef struct weir__sim_socket_type {
    weir__sim_file_type file;
    int (*bind)(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length);
    int (*listen)(weir__sim_socket *socket, int backlog);
    weir__sim_socket *(*accept)(weir__sim_socket *socket, bool take); /* NULL = none waits */
    int (*connect)(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length);
    int (*shutdown)(weir__sim_socket *socket, int how);
    ssize_t (*send)(weir__sim_socket *socket, const struct msghdr *message, int flags);
    ssize_t (*receive)(weir__sim_socket *socket, struct msghdr *message, int flags);
    int (*outq)(weir__sim_socket *socket);
} weir__sim_socket_type;

struct weir__sim_socket {
    weir__sim_file file; /* its type is the first member of a weir__sim_socket_type */
    weir_sim_host *host;
    weir__list bound_link; /* of the host's bound sockets */
    int domain, kind;      /* SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET */
    weir_address local, peer;
    bool is_bound, is_listening, reuse_address, reuse_port, only_v6;
    bool has_own_port, has_own_address; /* those that bind was given */
    bool has_peer;                      /* getpeername succeeds */
    bool lingers;                       /* SO_LINGER with 0: a close resets */
    int error;                          /* SO_ERROR */
    int64_t user_timeout_ns;
    size_t send_buffer, receive_buffer;

    /* Of Unix sockets. */
    struct ucred peer_credentials;
    bool passes_credentials; /* SO_PASSCRED */
    mode_t mode;             /* of the file that bind creates, less the umask */
};

static inline const weir__sim_socket_type *weir__sim_socket_type_of(const weir__sim_socket *socket)
{
    return (const weir__sim_socket_type *)(const void *)socket->file.type;
}

/* NULL if the descriptor is none, or not a socket. */
weir__sim_socket *weir__sim_socket_of(int descriptor);

/* Initializes what all kinds share. */
void weir__sim_socket_init(weir__sim_socket *socket, int domain, int kind);

/* ---- hosts and links ---- */

weir_sim_host *weir__sim_host_by_name(const char *name);

/* The host that has an address, as seen from `from`; NULL if none has. */
weir_sim_host *weir__sim_host_of(weir_sim_host *from, const weir_address *address);

/* The network between two hosts, which may be the same. */
const weir_sim_network *weir__sim_network(weir_sim_host *a, weir_sim_host *b);

/* True if nothing passes between them now. */
bool weir__sim_is_separated(weir_sim_host *a, weir_sim_host *b);

/* The time at which something of that size arrives that is sent now. */
int64_t weir__sim_arrival(weir_sim_host *from, weir_sim_host *to, size_t size);

/* ---- addresses ---- */

/* An IPv4-mapped address as IPv4; any other as it is. */
weir_address weir__sim_plain(const weir_address *address);

/* The same address as a socket of the domain shows it: IPv4 on an IPv6 socket is mapped. */
weir_address weir__sim_shown(int domain, const weir_address *address);

/*
 * Reads the address of a call: plain, and a wildcard address is the loopback address. Fails with
 * -EAFNOSUPPORT if a socket of that domain cannot reach it, -EINVAL.
 */
int weir__sim_destination(int domain, const struct sockaddr *address, socklen_t length,
                          weir_address *ret_address);

/* The address, without a port, from which a host reaches another. Fails with -ENETUNREACH. */
int weir__sim_source(const weir_sim_host *host, const weir_address *to, weir_address *ret_address);

/*
 * Binds to an address; port 0 selects a free one. Fails with -EADDRINUSE, -EADDRNOTAVAIL.
 */
int weir__sim_bind(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length);

/* Binds to a free port of any address, unless the socket is bound already. */
int weir__sim_bind_any(weir__sim_socket *socket);

/* Binds to the address that reaches `to`, and to a free port unless it has one already. */
int weir__sim_bind_ephemeral(weir__sim_socket *socket, const weir_address *to);
void weir__sim_unbind(weir__sim_socket *socket);

/* Gives up the address and the port that bind was not given. */
void weir__sim_unbind_ephemeral(weir__sim_socket *socket);

/* True if no other socket prevents that it listens. */
bool weir__sim_may_listen(weir__sim_socket *socket);

/*
 * Finds a socket of a host that receives what is sent to an address: a listener, or a datagram
 * socket that is not connected or connected to `from`. The most specific one is found; of several
 * with SO_REUSEPORT always the same for the same two addresses. Both addresses are plain.
 */
weir__sim_socket *weir__sim_find_bound(weir_sim_host *host, const weir_address *to, int kind,
                                       const weir_address *from);

/* ---- sockets ---- */

int weir__sim_tcp_socket(int domain);
int weir__sim_udp_socket(int domain);
int weir__sim_unix_socket(int kind);
void weir__sim_udp_begin(void);
void weir__sim_udp_end(void);
void weir__sim_unix_begin(void);

/* WEIR_SIM_FAULT_RESET: resets a connection, drawn by the seed. */
void weir__sim_tcp_reset_one(void);
void weir__sim_tcp_begin(void);
void weir__sim_tcp_end(void);

/* Copies to or from the vector of a message; returns the number of bytes. */
size_t weir__sim_copy_in(void *to, size_t size, const struct msghdr *message, size_t skip);
size_t weir__sim_copy_out(const struct msghdr *message, size_t skip, const void *from, size_t size);
size_t weir__sim_message_size(const struct msghdr *message);
void weir__sim_set_name(struct msghdr *message, const weir_address *address);

#endif
