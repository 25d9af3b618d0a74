/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of error codes. Those of weir come from WEIR_ERROR_MAP. Names of errno values
 * come from the list below, because only glibc has a function for them; their texts come from libc.
 */
#include <weir/error.h>

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

/* clang-format off */
#define ERRNO_MAP(XX)                                                                              \
    XX(EPERM) XX(ENOENT) XX(ESRCH) XX(EINTR) XX(EIO) XX(ENXIO) XX(E2BIG) XX(ENOEXEC) XX(EBADF)     \
    XX(ECHILD) XX(EAGAIN) XX(ENOMEM) XX(EACCES) XX(EFAULT) XX(ENOTBLK) XX(EBUSY) XX(EEXIST)        \
    XX(EXDEV) XX(ENODEV) XX(ENOTDIR) XX(EISDIR) XX(EINVAL) XX(ENFILE) XX(EMFILE) XX(ENOTTY)        \
    XX(ETXTBSY) XX(EFBIG) XX(ENOSPC) XX(ESPIPE) XX(EROFS) XX(EMLINK) XX(EPIPE) XX(EDOM) XX(ERANGE) \
    XX(EDEADLK) XX(ENAMETOOLONG) XX(ENOLCK) XX(ENOSYS) XX(ENOTEMPTY) XX(ELOOP) XX(ENOMSG)          \
    XX(EIDRM) XX(ECHRNG) XX(EL2NSYNC) XX(EL3HLT) XX(EL3RST) XX(ELNRNG) XX(EUNATCH) XX(ENOCSI)      \
    XX(EL2HLT) XX(EBADE) XX(EBADR) XX(EXFULL) XX(ENOANO) XX(EBADRQC) XX(EBADSLT) XX(EBFONT)        \
    XX(ENOSTR) XX(ENODATA) XX(ETIME) XX(ENOSR) XX(ENONET) XX(ENOPKG) XX(EREMOTE) XX(ENOLINK)       \
    XX(EADV) XX(ESRMNT) XX(ECOMM) XX(EPROTO) XX(EMULTIHOP) XX(EDOTDOT) XX(EBADMSG) XX(EOVERFLOW)   \
    XX(ENOTUNIQ) XX(EBADFD) XX(EREMCHG) XX(ELIBACC) XX(ELIBBAD) XX(ELIBSCN) XX(ELIBMAX)            \
    XX(ELIBEXEC) XX(EILSEQ) XX(ERESTART) XX(ESTRPIPE) XX(EUSERS) XX(ENOTSOCK) XX(EDESTADDRREQ)     \
    XX(EMSGSIZE) XX(EPROTOTYPE) XX(ENOPROTOOPT) XX(EPROTONOSUPPORT) XX(ESOCKTNOSUPPORT)            \
    XX(EOPNOTSUPP) XX(EPFNOSUPPORT) XX(EAFNOSUPPORT) XX(EADDRINUSE) XX(EADDRNOTAVAIL)              \
    XX(ENETDOWN) XX(ENETUNREACH) XX(ENETRESET) XX(ECONNABORTED) XX(ECONNRESET) XX(ENOBUFS)         \
    XX(EISCONN) XX(ENOTCONN) XX(ESHUTDOWN) XX(ETOOMANYREFS) XX(ETIMEDOUT) XX(ECONNREFUSED)         \
    XX(EHOSTDOWN) XX(EHOSTUNREACH) XX(EALREADY) XX(EINPROGRESS) XX(ESTALE) XX(EUCLEAN)             \
    XX(ENOTNAM) XX(ENAVAIL) XX(EISNAM) XX(EREMOTEIO) XX(EDQUOT) XX(ENOMEDIUM) XX(EMEDIUMTYPE)      \
    XX(ECANCELED) XX(ENOKEY) XX(EKEYEXPIRED) XX(EKEYREVOKED) XX(EKEYREJECTED) XX(EOWNERDEAD)       \
    XX(ENOTRECOVERABLE) XX(ERFKILL) XX(EHWPOISON)
/* clang-format on */

const char *weir_error_name(int err)
{
    switch (err) {
    case 0:
        return "OK";
#define OUR_NAME(name, number, text) \
    case number:                     \
        return "WEIR_" #name;
        WEIR_ERROR_MAP(OUR_NAME)
#define ERRNO_NAME(name) \
    case -name:          \
        return #name;
        ERRNO_MAP(ERRNO_NAME)
    default:
        return "EUNKNOWN";
    }
}

/* NULL if libc does not know the number. The texts are constants in glibc and musl. */
static const char *errno_text(int number)
{
#ifdef __GLIBC__
    return strerrordesc_np(number);
#else
    return strerror(number);
#endif
}

const char *weir_error_text(int err)
{
    const char *text = NULL;

    switch (err) {
    case 0:
        return "success";
#define OUR_TEXT(name, number, text) \
    case number:                     \
        return text;
        WEIR_ERROR_MAP(OUR_TEXT)
    case -EDEADLK: /* the text of libc does not say what to do */
        return "a loop thread, or an executor's own thread, may not wait "
               "(Resource deadlock avoided)";
    default:
        if (err < 0 && err != INT_MIN)
            text = errno_text(-err);
        return text != NULL ? text : "unknown error";
    }
}
