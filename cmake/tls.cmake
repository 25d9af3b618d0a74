# SPDX-License-Identifier: Apache-2.0
#
# The option WEIR_WITH_TLS: libweir-tls, if there is an OpenSSL 3 to link. Without it src/tls is
# left out, and so is what is named after it: tests, examples, fuzz targets and benchmarks.
find_package(OpenSSL 3 QUIET)
if(NOT OPENSSL_FOUND AND NOT WEIR_WITH_TLS)
    message(STATUS "OpenSSL 3 is missing: no libweir-tls (Debian: libssl-dev)")
endif()
option(WEIR_WITH_TLS "Build libweir-tls (needs OpenSSL 3)" ${OPENSSL_FOUND})
if(WEIR_WITH_TLS AND NOT OPENSSL_FOUND)
    find_package(OpenSSL 3 REQUIRED)
endif()

# Programs that are named tls* cannot be linked without it: takes them out of a list of sources.
macro(weir_keep_what_links list)
    if(NOT TARGET weir-tls)
        list(FILTER ${list} EXCLUDE REGEX "/(test_)?tls[^/]*(/main)?\\.c$")
    endif()
endmacro()
