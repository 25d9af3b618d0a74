# SPDX-License-Identifier: Apache-2.0
#
# For toolchains without liburing, OpenSSL and zlib: links the host's headers that are the same on
# every machine into the folder host_headers, so that code that needs them can be compiled, not
# linked.
# Debian stores some of OpenSSL's headers per architecture; they differ only between 32 and 64 bits.
set(host_headers ${CMAKE_BINARY_DIR}/host-headers)
file(MAKE_DIRECTORY ${host_headers}/openssl)
foreach(name liburing liburing.h zlib.h zconf.h)
    file(CREATE_LINK /usr/include/${name} ${host_headers}/${name} SYMBOLIC)
endforeach()
file(GLOB headers /usr/include/openssl/*.h /usr/include/*-linux-gnu/openssl/*.h)
foreach(header IN LISTS headers)
    cmake_path(GET header FILENAME name)
    file(CREATE_LINK ${header} ${host_headers}/openssl/${name} SYMBOLIC)
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${host_headers}")
set(ZLIB_INCLUDE_DIR ${host_headers} CACHE PATH "")
set(ZLIB_LIBRARY z CACHE STRING "") # the name: there is none to find
set(OPENSSL_INCLUDE_DIR ${host_headers} CACHE PATH "")
