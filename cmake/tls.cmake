# SPDX-License-Identifier: Apache-2.0
#
# The option WEIR_WITH_TLS builds libweir-tls; on by default if OpenSSL 3 links. Without it src/tls
# is left out, and all tests, examples, fuzz targets and benchmarks named tls*.
include(CheckCSourceCompiles)
find_package(OpenSSL 3 QUIET)
if(OPENSSL_FOUND)
    set(CMAKE_REQUIRED_LIBRARIES OpenSSL::SSL OpenSSL::Crypto)
    check_c_source_compiles("
        #include <openssl/ssl.h>
        int main(void) { return OPENSSL_init_ssl(0, 0) != 1; }"
        WEIR_TLS_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(NOT OPENSSL_FOUND OR NOT WEIR_TLS_LINKS)
    set(WEIR_TLS_LINKS OFF)
    if(NOT WEIR_WITH_TLS)
        message(STATUS "OpenSSL 3 is missing: no libweir-tls (Debian: libssl-dev)")
    endif()
endif()
option(WEIR_WITH_TLS "Build libweir-tls (needs OpenSSL 3)" ${WEIR_TLS_LINKS})
if(WEIR_WITH_TLS)
    find_package(OpenSSL 3 REQUIRED)
endif()

# For targets that include OpenSSL's headers: clang warns about casts in their macros.
function(weir_use_openssl target)
    target_link_libraries(${target} PUBLIC OpenSSL::SSL OpenSSL::Crypto)
    target_compile_options(${target} PUBLIC $<$<C_COMPILER_ID:Clang>:-Wno-cast-qual>)
endfunction()
