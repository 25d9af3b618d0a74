# SPDX-License-Identifier: Apache-2.0
#
# Installation: headers, the libraries, their pkg-config files and one CMake package.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)

# The directories of the pkg-config files begin with ${prefix}, unless they are absolute.
foreach(directory LIBDIR INCLUDEDIR)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${directory}})
        set(pc_${directory} ${CMAKE_INSTALL_${directory}})
    else()
        set(pc_${directory} "\${prefix}/${CMAKE_INSTALL_${directory}}")
    endif()
endforeach()

# weir_install(EXPORT NAME DESCRIPTION REQUIRES REQUIRES-PRIVATE LIBS-PRIVATE): a library and its
# pkg-config file, with the prefix that is known only when it is installed (decision 57). What is
# private to the shared library is needed by all programs if there is only the static one.
function(weir_install export pc_name pc_description pc_requires pc_requires_private pc_libs_private)
    set(pc_libs "")
    if(WEIR_BUILD_SHARED)
        install(TARGETS ${pc_name} EXPORT ${export})
    else()
        string(STRIP "${pc_requires} ${pc_requires_private}" pc_requires)
        set(pc_requires_private "")
        set(pc_libs " ${pc_libs_private}")
        set(pc_libs_private "")
    endif()
    if(WEIR_BUILD_STATIC)
        install(TARGETS ${pc_name}-static EXPORT ${export})
    endif()
    set(pc_prefix "@pc_prefix@")
    configure_file(cmake/weir.pc.in ${pc_name}.pc.in @ONLY)
    set(file ${PROJECT_BINARY_DIR}/${pc_name}.pc)
    install(CODE "
        set(pc_prefix \"\${CMAKE_INSTALL_PREFIX}\") # empty for /
        if(pc_prefix)
            get_filename_component(pc_prefix \"\${pc_prefix}\" ABSOLUTE)
        endif()
        configure_file(\"${file}.in\" \"${file}\" @ONLY)")
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

set(this_weir "weir = ${PROJECT_VERSION}")
weir_install(weir-targets weir "${PROJECT_DESCRIPTION}" "" "" "${weir_uring_flags}-lpthread")
weir_install(weir-targets weir-sim "a simulator for programs that use weir" "${this_weir}" "" "")
if(TARGET weir-tls)
    weir_install(weir-tls-targets weir-tls "TLS for weir" "${this_weir}"
        "libssl >= 3 libcrypto >= 3" "")
    install(EXPORT weir-tls-targets NAMESPACE weir:: DESTINATION ${package_dir})
else()
    set(without_tls PATTERN "tls*.h" EXCLUDE)
endif()
if(TARGET weir-http)
    weir_install(weir-http-targets weir-http "HTTP for weir" "${this_weir}" ""
        "${weir_http_flags}")
    install(EXPORT weir-http-targets NAMESPACE weir:: DESTINATION ${package_dir})
else()
    set(without_http REGEX "/(http[^/]*|websocket|dashboard)\\.h$" EXCLUDE)
endif()
install(EXPORT weir-targets NAMESPACE weir:: DESTINATION ${package_dir})

configure_package_config_file(cmake/weir-config.cmake.in weir-config.cmake
    INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(weir-config-version.cmake COMPATIBILITY ${weir_compatibility})
install(FILES
    ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
    DESTINATION ${package_dir})
install(FILES tools/weir.supp DESTINATION ${CMAKE_INSTALL_DATADIR}/weir)
install(DIRECTORY include/weir TYPE INCLUDE FILES_MATCHING PATTERN "*.h"
    ${without_tls} ${without_http})
