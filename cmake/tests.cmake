# SPDX-License-Identifier: Apache-2.0
#
# weir_add_test(NAME COMMAND...): adds a test with a timeout, in which leaks, races and undefined
# behaviour are failures with a stack trace.
#
# There are hundreds of test programs: lld links each in half the time. Debian's cross compilers do
# not find it.
find_program(WEIR_LLD ld.lld)
set(weir_test_link_options "")
if(WEIR_LLD AND NOT CMAKE_CROSSCOMPILING)
    set(weir_test_link_options -fuse-ld=lld)
endif()
set(WEIR_TEST_TIMEOUT "" CACHE STRING "Seconds that one test program may take")
if(WEIR_TEST_TIMEOUT)
    set(weir_test_timeout ${WEIR_TEST_TIMEOUT})
elseif(WEIR_SANITIZE)
    set(weir_test_timeout 300)
else()
    set(weir_test_timeout 120)
endif()
set(weir_test_environment
    WEIR_TEST_TIMEOUT=${weir_test_timeout} # lets a test report why it hangs
    NODE_PATH=${PROJECT_SOURCE_DIR}/build/npm/node_modules # of tools/npm_packages.py
    ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1)

function(weir_add_test name)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES
        ENVIRONMENT "${weir_test_environment}" TIMEOUT ${weir_test_timeout})
endfunction()
