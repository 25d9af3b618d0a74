# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: Debian's musl-gcc, which finds no kernel headers: links them, without those of glibc.
set(CMAKE_C_COMPILER musl-gcc)
include(${CMAKE_CURRENT_LIST_DIR}/host_headers.cmake)
file(GLOB asm /usr/include/*-linux-gnu/asm)
list(GET asm 0 asm)
file(CREATE_LINK ${asm} ${host_headers}/asm SYMBOLIC)
foreach(name linux asm-generic)
    file(CREATE_LINK /usr/include/${name} ${host_headers}/${name} SYMBOLIC)
endforeach()
