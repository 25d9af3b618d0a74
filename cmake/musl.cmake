# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: Debian's musl-gcc. It sees no kernel headers, so it is given a folder that has these
# and nothing of glibc.
set(CMAKE_C_COMPILER musl-gcc)
set(kernel_headers ${CMAKE_BINARY_DIR}/kernel-headers)
file(MAKE_DIRECTORY ${kernel_headers})
foreach(folder linux asm-generic)
    file(CREATE_LINK /usr/include/${folder} ${kernel_headers}/${folder} SYMBOLIC)
endforeach()
file(GLOB asm /usr/include/*-linux-gnu/asm)
list(GET asm 0 asm)
file(CREATE_LINK ${asm} ${kernel_headers}/asm SYMBOLIC)
set(CMAKE_C_FLAGS_INIT "-idirafter ${kernel_headers}")
