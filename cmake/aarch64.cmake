# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: Debian's cross compiler for 64-bit ARM. liburing's headers are the same everywhere, so
# the host's are good enough to compile with.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(host_headers ${CMAKE_BINARY_DIR}/host-headers)
file(MAKE_DIRECTORY ${host_headers})
foreach(name liburing liburing.h)
    file(CREATE_LINK /usr/include/${name} ${host_headers}/${name} SYMBOLIC)
endforeach()
set(CMAKE_C_FLAGS_INIT "-idirafter ${host_headers}")
