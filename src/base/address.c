/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing and formatting addresses. The name of an in-process address is stored like that of an
 * abstract Unix socket: its bytes without a NUL, delimited by the length.
 */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"
#define INPROC_PREFIX "inproc:"
#define NAME_OFFSET offsetof(struct sockaddr, sa_data)
#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)
#define INPROC_NAME_MAX (WEIR_ADDRESS_TEXT_SIZE - sizeof(INPROC_PREFIX))

/* ---- parsing ---- */

static int parse_number(const char *text, unsigned long max, unsigned long *ret_number)
{
    char *end;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    errno = 0;
    *ret_number = strtoul(text, &end, 10);
    return *end == '\0' && errno == 0 && *ret_number <= max ? 0 : -EINVAL;
}

static int parse_ipv4(const char *host, uint16_t port, weir_address *ret_address)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&ret_address->storage;

    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    in->sin_addr.s_addr = htonl(INADDR_ANY);
    ret_address->length = sizeof(*in);
    return *host == '\0' || inet_pton(AF_INET, host, &in->sin_addr) == 1 ? 0 : -EINVAL;
}

/* The scope of a link-local address is an interface index: "fe80::1%2". */
static int parse_ipv6(char *host, uint16_t port, weir_address *ret_address)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret_address->storage;
    char *scope = strchr(host, '%');
    unsigned long number = 0;

    if (scope != NULL) {
        *scope++ = '\0';
        if (parse_number(scope, UINT32_MAX, &number) < 0)
            return -EINVAL;
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    in6->sin6_scope_id = (uint32_t)number;
    ret_address->length = sizeof(*in6);
    return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? 0 : -EINVAL;
}

int weir__address_split(const char *text, size_t *ret_host_length, uint16_t *ret_port)
{
    const char *colon = strrchr(text, ':');
    unsigned long port;

    if (colon == NULL || parse_number(colon + 1, UINT16_MAX, &port) < 0)
        return -EINVAL;
    *ret_host_length = (size_t)(colon - text);
    *ret_port = (uint16_t)port;
    return 0;
}

static int parse_internet(const char *text, weir_address *ret_address)
{
    char host[WEIR_ADDRESS_TEXT_SIZE];
    size_t length;
    uint16_t port;

    if (weir__address_split(text, &length, &port) < 0 || length >= sizeof(host))
        return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';
    if (host[0] != '[')
        return parse_ipv4(host, port, ret_address);
    if (host[length - 1] != ']')
        return -EINVAL;
    host[length - 1] = '\0';
    return parse_ipv6(host + 1, port, ret_address);
}

static int parse_unix(const char *path, weir_address *ret_address)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&ret_address->storage;
    size_t length = strlen(path);
    bool abstract = path[0] == '@';

    if (length == 0)
        return -EINVAL;
    if (length >= sizeof(un->sun_path))
        return -ENAMETOOLONG;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, length);
    if (abstract)
        un->sun_path[0] = '\0';
    ret_address->length = (socklen_t)(PATH_OFFSET + length + !abstract);
    return 0;
}

static int parse_inproc(const char *name, weir_address *ret_address)
{
    size_t length = strlen(name);

    if (length == 0)
        return -EINVAL;
    if (length > INPROC_NAME_MAX)
        return -ENAMETOOLONG;
    ret_address->storage.ss_family = WEIR_AF_INPROC;
    memcpy((char *)&ret_address->storage + NAME_OFFSET, name, length);
    ret_address->length = (socklen_t)(NAME_OFFSET + length);
    return 0;
}

int weir__address_parse_host(const char *host, weir_address *ret_address)
{
    weir_address address = {0};
    char text[INET6_ADDRSTRLEN + 16];
    size_t length = strlen(host);
    int err;

    if (length == 0 || length >= sizeof(text))
        return -EINVAL;
    memcpy(text, host, length + 1);
    err = strchr(text, ':') != NULL ? parse_ipv6(text, 0, &address) : parse_ipv4(text, 0, &address);
    if (err == 0)
        *ret_address = address;
    return err;
}

static const char *after(const char *text, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

int weir_address_parse(const char *text, weir_address *ret_address)
{
    weir_address address = {0};
    const char *rest;
    int err;

    if (text == NULL)
        return -EINVAL;
    if ((rest = after(text, UNIX_PREFIX)) != NULL)
        err = parse_unix(rest, &address);
    else if ((rest = after(text, INPROC_PREFIX)) != NULL)
        err = parse_inproc(rest, &address);
    else
        err = parse_internet(text, &address);
    if (err == 0)
        *ret_address = address;
    return err;
}

/* ---- formatting ---- */

static void format_ipv4(const weir_address *address, char *buffer, size_t size)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
    char host[INET_ADDRSTRLEN];

    (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
    (void)snprintf(buffer, size, "%s:%u", host, (unsigned)ntohs(in->sin_port));
}

static void format_ipv6(const weir_address *address, char *buffer, size_t size)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
    unsigned port = ntohs(in6->sin6_port);
    char host[INET6_ADDRSTRLEN];

    (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
    if (in6->sin6_scope_id != 0)
        (void)snprintf(buffer, size, "[%s%%%u]:%u", host, (unsigned)in6->sin6_scope_id, port);
    else
        (void)snprintf(buffer, size, "[%s]:%u", host, port);
}

/* `name` need not be NUL-terminated. */
static void format_name(const char *prefix, const char *name, size_t length, char *buffer,
                        size_t size)
{
    (void)snprintf(buffer, size, "%s%.*s", prefix, (int)length, name);
}

static void format_unix(const weir_address *address, char *buffer, size_t size)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
    size_t length = address->length > PATH_OFFSET ? address->length - PATH_OFFSET : 0;

    if (length > 0 && un->sun_path[0] == '\0')
        format_name(UNIX_PREFIX "@", un->sun_path + 1, length - 1, buffer, size);
    else
        format_name(UNIX_PREFIX, un->sun_path, length, buffer, size);
}

char *weir_address_format(const weir_address *address, char *buffer, size_t size)
{
    switch (weir_address_family(address)) {
    case AF_INET:
        format_ipv4(address, buffer, size);
        break;
    case AF_INET6:
        format_ipv6(address, buffer, size);
        break;
    case AF_UNIX:
        format_unix(address, buffer, size);
        break;
    case WEIR_AF_INPROC:
        format_name(INPROC_PREFIX, (const char *)&address->storage + NAME_OFFSET,
                    address->length - NAME_OFFSET, buffer, size);
        break;
    default:
        (void)snprintf(buffer, size, "-");
    }
    return buffer;
}

/* ---- sockaddr ---- */

int weir_address_from_sockaddr(const struct sockaddr *address, socklen_t length,
                               weir_address *ret_address)
{
    if (length > sizeof(ret_address->storage) || (length > 0 && length < sizeof(sa_family_t)))
        return -EINVAL;
    memset(ret_address, 0, sizeof(*ret_address));
    if (length > 0)
        memcpy(&ret_address->storage, address, length);
    ret_address->length = length;
    return 0;
}

const struct sockaddr *weir_address_sockaddr(const weir_address *address)
{
    return (const struct sockaddr *)&address->storage;
}

int weir_address_family(const weir_address *address)
{
    return address->length > 0 ? address->storage.ss_family : AF_UNSPEC;
}

/* ---- parts ---- */

weir_address weir__address_of_host(int family, const uint8_t *host, uint16_t port)
{
    weir_address address = {.length = sizeof(struct sockaddr_in)};

    address.storage.ss_family = (sa_family_t)family;
    if (family == AF_INET) {
        memcpy(&((struct sockaddr_in *)&address.storage)->sin_addr, host, 4);
    } else {
        memcpy(&((struct sockaddr_in6 *)&address.storage)->sin6_addr, host, 16);
        address.length = sizeof(struct sockaddr_in6);
    }
    weir_address_set_port(&address, port);
    return address;
}

const uint8_t *weir__address_host(const weir_address *address, size_t *ret_length)
{
    bool is_ipv4 = weir_address_family(address) == AF_INET;

    *ret_length = is_ipv4 ? 4 : 16;
    return is_ipv4 ? (const uint8_t *)&((const struct sockaddr_in *)&address->storage)->sin_addr
                   : ((const struct sockaddr_in6 *)&address->storage)->sin6_addr.s6_addr;
}

weir_address weir__address_of_name(const void *name, size_t length)
{
    weir_address address = {.length = (socklen_t)(PATH_OFFSET + length)};
    struct sockaddr_un *un = (struct sockaddr_un *)&address.storage;

    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, name, length);
    return address;
}

const uint8_t *weir__address_name(const weir_address *address, size_t *ret_length)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
    size_t length = address->length > PATH_OFFSET ? address->length - PATH_OFFSET : 0;

    *ret_length = length < sizeof(un->sun_path) ? length : sizeof(un->sun_path);
    return (const uint8_t *)un->sun_path;
}

/* ---- ports ---- */

uint16_t weir_address_port(const weir_address *address)
{
    switch (weir_address_family(address)) {
    case AF_INET:
        return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
    case AF_INET6:
        return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
    default:
        return 0;
    }
}

void weir_address_set_port(weir_address *address, uint16_t port)
{
    if (weir_address_family(address) == AF_INET)
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
    else if (weir_address_family(address) == AF_INET6)
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
}

/* Internet addresses are compared as text, which ignores members such as the IPv6 flow label. */
bool weir_address_equal(const weir_address *a, const weir_address *b)
{
    char text_a[WEIR_ADDRESS_TEXT_SIZE], text_b[WEIR_ADDRESS_TEXT_SIZE];

    if (weir_address_family(a) != weir_address_family(b))
        return false;
    if (weir_address_family(a) == AF_INET || weir_address_family(a) == AF_INET6)
        return strcmp(weir_address_format(a, text_a, sizeof(text_a)),
                      weir_address_format(b, text_b, sizeof(text_b))) == 0;
    return a->length == b->length && memcmp(&a->storage, &b->storage, a->length) == 0;
}
