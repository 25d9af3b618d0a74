# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: Debian's cross compiler for 64-bit ARM with the libraries that tools/aarch64.py has
# unpacked, and qemu for the tests.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source_dir)
find_program(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++) # only tests/cplusplus needs it
set(CMAKE_SYSROOT ${source_dir}/build/aarch64-root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${CMAKE_SYSROOT})
