# What every target of Sibyl shares.
#
#   sibyl_library(NAME SOURCES a.cpp b.cpp DEPENDS x y PRIVATE_DEPENDS z)   -> library sibyl_NAME, alias sibyl::NAME
#   sibyl_program(NAME SOURCES main.cpp DEPENDS x)                          -> executable NAME in bin/
#   sibyl_test(NAME SOURCES a_test.cpp DEPENDS x LABELS slow)               -> GoogleTest executable, run by ctest
# A test carries the label `unit` and its own. An executable is one test of ctest's, for starting a program for each case takes longer
# than most cases; PARTS n makes n tests of it, each of every n-th case, which run side by side; EACH makes a test of every case (where
# some may have to be skipped). One executable a library: each costs some seconds of headers and templates.
# Under ctest, property tests draw the same cases every time; CONTRIBUTING.md says how to draw others.
# Sources are listed one by one, never globbed.

include(Precompile)

# sibyl_flags(TARGET [test]): what tests themselves run is of no interest to a fuzzer, and counting it takes time.
function(sibyl_flags target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/sibyl>)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Position-independent or not, nobody puts other functions in the place of these: they may be inlined (Clang does).
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  endif()
  if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # It takes a source that another one includes for a header, where a class with a local type would be wrong.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(SIBYL_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(SIBYL_FUZZ AND NOT "${ARGN}" STREQUAL "test")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(sibyl_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(sibyl_${name} STATIC ${ARG_SOURCES})
  add_library(sibyl::${name} ALIAS sibyl_${name})
  set_target_properties(sibyl_${name} PROPERTIES EXPORT_NAME ${name})
  sibyl_flags(sibyl_${name})
  target_link_libraries(sibyl_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  sibyl_precompile(sibyl_${name} library)
endfunction()

function(sibyl_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  sibyl_flags(${name})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  sibyl_precompile(${name} program)
endfunction()

include(GoogleTest)
function(sibyl_test name)
  cmake_parse_arguments(ARG "EACH" "PARTS" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  sibyl_flags(${name} test)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  sibyl_precompile(${name} test)
  target_compile_definitions(${name} PRIVATE SIBYL_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SIBYL_BINARY_DIR="${PROJECT_BINARY_DIR}")
  set(labels unit ${ARG_LABELS})
  if(ARG_EACH)
    string(REPLACE ";" "\\;" labels "${labels}")
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 120 PROPERTIES LABELS ${labels} ENVIRONMENT "RC_PARAMS=seed=1")
    return()
  endif()
  if(NOT ARG_PARTS)
    set(ARG_PARTS 1)
  endif()
  set(tests)
  foreach(part RANGE 1 ${ARG_PARTS})
    set(test ${name})
    if(ARG_PARTS GREATER 1)
      set(test ${name}.${part}of${ARG_PARTS})
    endif()
    math(EXPR index "${part} - 1")
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(${test} PROPERTIES LABELS "${labels}" TIMEOUT 3000
      ENVIRONMENT "RC_PARAMS=seed=1;GTEST_TOTAL_SHARDS=${ARG_PARTS};GTEST_SHARD_INDEX=${index}")
    list(APPEND tests ${test})
  endforeach()
  set(${name}_tests ${tests} PARENT_SCOPE)
endfunction()
