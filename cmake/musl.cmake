# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: Debian's musl-gcc. It sees no kernel headers, so it is given a folder that has these,
# those of liburing, and nothing of glibc.
set(CMAKE_C_COMPILER musl-gcc)
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(name linux asm-generic liburing liburing.h)
    file(CREATE_LINK /usr/include/${name} ${kernel_headers}/${name} SYMBOLIC)
endforeach()
file(GLOB asm /usr/include/*-linux-gnu/asm)
list(GET asm 0 asm)
file(CREATE_LINK ${asm} ${kernel_headers}/asm SYMBOLIC)
set(CMAKE_C_FLAGS_INIT "-idirafter ${kernel_headers}")
