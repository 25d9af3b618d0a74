# SPDX-License-Identifier: Apache-2.0
#
# The option WEIR_WITH_URING builds the io_uring backend; on by default if liburing links. Without
# it src/loop/uring*.c is left out, and loops run on epoll.
include(CheckCSourceCompiles)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
    pkg_check_modules(URING QUIET liburing>=2.3)
endif()
list(REMOVE_ITEM URING_INCLUDE_DIRS /usr/include) # not for a compiler that has another one there
if(URING_FOUND)
    set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE) # as for weir itself: its header needs cpu_set_t
    set(CMAKE_REQUIRED_INCLUDES ${URING_INCLUDE_DIRS})
    set(CMAKE_REQUIRED_LIBRARIES ${URING_LINK_LIBRARIES})
    check_c_source_compiles("
        #include <liburing.h>
        int main(void) { struct io_uring ring; return io_uring_queue_init(1, &ring, 0); }"
        WEIR_URING_LINKS)
    unset(CMAKE_REQUIRED_DEFINITIONS)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
endif()
if(NOT URING_FOUND OR NOT WEIR_URING_LINKS)
    set(WEIR_URING_LINKS OFF)
    if(NOT WEIR_WITH_URING)
        message(STATUS "liburing 2.3 is missing: no io_uring (Debian: liburing-dev)")
    endif()
endif()
option(WEIR_WITH_URING "Build the io_uring backend (needs liburing)" ${WEIR_URING_LINKS})

set(weir_uring "") # linked by name, so that installed files do not contain paths
set(weir_uring_flags "")
if(WEIR_WITH_URING)
    set(weir_uring uring)
    set(weir_uring_flags "-luring ")
    include_directories(SYSTEM ${URING_INCLUDE_DIRS})
    link_directories(${URING_LIBRARY_DIRS})
    add_compile_definitions(WEIR_WITH_URING)
endif()
