# SPDX-License-Identifier: Apache-2.0
#
# The option WEIR_HARDENING: the flags of Debian's own packages. A stack protector, _FORTIFY_SOURCE,
# full RELRO with immediate binding, and position-independent programs.
#
# Settings of the user's flags and of the compiler are left alone. Sanitizers replace hardening, and
# _FORTIFY_SOURCE needs an optimized build. WEIR_HARDENED is true if all of it applies.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)
option(WEIR_HARDENING "Stack protector, _FORTIFY_SOURCE, full RELRO, PIE" ON)

set(WEIR_HARDENED OFF)
if(WEIR_HARDENING AND NOT WEIR_SANITIZE)
    if(NOT CMAKE_C_FLAGS MATCHES "stack-protector")
        check_c_compiler_flag(-fstack-protector-strong WEIR_HAVE_STACK_PROTECTOR)
        if(WEIR_HAVE_STACK_PROTECTOR)
            add_compile_options(-fstack-protector-strong)
        endif()
    endif()

    set(CMAKE_REQUIRED_FLAGS -O2)
    check_c_source_compiles("
        #ifndef _FORTIFY_SOURCE
        #error
        #endif
        int main(void) { return 0; }"
        WEIR_FORTIFIED_ALREADY)
    unset(CMAKE_REQUIRED_FLAGS)
    if(NOT WEIR_FORTIFIED_ALREADY AND NOT CMAKE_C_FLAGS MATCHES "_FORTIFY_SOURCE")
        add_compile_options(
            "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>")
    endif()

    check_linker_flag(C "-Wl,-z,relro,-z,now" WEIR_HAVE_RELRO)
    if(WEIR_HAVE_RELRO)
        add_link_options(-Wl,-z,relro,-z,now)
    endif()

    check_pie_supported(LANGUAGES C) # CMAKE_POSITION_INDEPENDENT_CODE links programs with -pie, too
    if(WEIR_HAVE_STACK_PROTECTOR AND WEIR_HAVE_RELRO AND CMAKE_C_LINK_PIE_SUPPORTED
            AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
        set(WEIR_HARDENED ON)
    endif()
endif()
