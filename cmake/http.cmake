# SPDX-License-Identifier: Apache-2.0
#
# The option WEIR_WITH_HTTP builds libweir-http; on by default if zlib links. Without it its layers
# are left out, and all tests, examples, fuzz targets and benchmarks named http*, ws*, websocket*,
# dashboard* or listed in weir_http_programs. Brotli and zstd are used if they are there.
include(CheckCSourceCompiles)
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
    set(CMAKE_REQUIRED_LIBRARIES ZLIB::ZLIB)
    check_c_source_compiles("
        #include <zlib.h>
        int main(void) { return zlibVersion() == 0; }"
        WEIR_ZLIB_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(NOT ZLIB_FOUND OR NOT WEIR_ZLIB_LINKS)
    set(WEIR_ZLIB_LINKS OFF)
    if(NOT WEIR_WITH_HTTP)
        message(STATUS "zlib is missing: no libweir-http (Debian: zlib1g-dev)")
    endif()
endif()
option(WEIR_WITH_HTTP "Build libweir-http (needs zlib)" ${WEIR_ZLIB_LINKS})

# weir_http_libraries: what libweir-http links besides libweir. weir_http_definitions: the codings
# that it knows besides gzip and deflate. weir_http_flags: for its pkg-config file, in the order
# that static linking needs.
set(weir_http_libraries "")
set(weir_http_definitions "")
set(weir_http_codings "")
set(weir_http_flags "-lz")
if(WEIR_WITH_HTTP)
    find_package(ZLIB REQUIRED)
    list(APPEND weir_http_libraries ZLIB::ZLIB)
    find_package(PkgConfig)
    if(PkgConfig_FOUND AND WEIR_ZLIB_LINKS)
        pkg_check_modules(weir_brotli IMPORTED_TARGET libbrotlienc libbrotlidec)
        pkg_check_modules(weir_zstd IMPORTED_TARGET libzstd)
    endif()
    if(weir_brotli_FOUND)
        list(APPEND weir_http_libraries PkgConfig::weir_brotli)
        list(APPEND weir_http_definitions WEIR_HAVE_BROTLI)
        list(APPEND weir_http_codings brotli)
        string(APPEND weir_http_flags " -lbrotlienc -lbrotlidec -lbrotlicommon -lm")
    endif()
    if(weir_zstd_FOUND)
        list(APPEND weir_http_libraries PkgConfig::weir_zstd)
        list(APPEND weir_http_definitions WEIR_HAVE_ZSTD)
        list(APPEND weir_http_codings zstd)
        string(APPEND weir_http_flags " -lzstd")
    endif()
endif()
list(JOIN weir_http_codings " " weir_http_codings)

# The layers of libweir-http.
set(weir_http_layers protocol/http protocol/websocket dashboard)

# Programs that need libweir-http, besides those that their name tells.
set(weir_http_programs demo file-server hello-http rest reverse-proxy sse top upload watching)

# Removes the programs that need a library that is not built from a list of sources.
macro(weir_keep_what_links list)
    if(NOT TARGET weir-tls)
        list(FILTER ${list} EXCLUDE REGEX "/(test_)?tls[^/]*(/main)?\\.c$")
    endif()
    if(NOT TARGET weir-http)
        list(JOIN weir_http_programs | names)
        set(names "(http|ws|websocket|dashboard)[^/]*|${names}")
        list(FILTER ${list} EXCLUDE REGEX "/(test_)?(${names})(/main)?\\.c$")
    endif()
endmacro()
