# The headers of others that most sources include, parsed once: sibyl_precompile(TARGET KIND), KIND being library, program or
# test. What uses libtorch has its headers, too, which take 20 seconds. Each source still names what it uses; the tidy preset, which
# turns this off, is where a forgotten name shows.

option(SIBYL_PRECOMPILE "Parse the most used headers of other libraries once" ON)

# Programs are compiled as position-independent as libraries, not a little less, so that one precompiled header serves both.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE ${CMAKE_CXX_COMPILE_OPTIONS_PIC})

set(sibyl_precompiled_headers
    <algorithm> <array> <cmath> <cstdint> <filesystem> <fstream> <functional> <map> <memory> <numeric> <optional> <set> <span>
    <sstream> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
    <boost/graph/adjacency_list.hpp> <fmt/format.h> <tl/expected.hpp>)

# The target that holds what targets of this kind share.
function(sibyl_precompiled owner tests torch)
  set(source ${CMAKE_BINARY_DIR}/precompiled/${owner}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
  add_library(${owner} OBJECT ${source})
  if(tests)
    sibyl_flags(${owner} test)
  else()
    sibyl_flags(${owner})
  endif()
  target_include_directories(${owner} SYSTEM PRIVATE $<TARGET_PROPERTY:Boost::headers,INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${owner} PRIVATE tl::expected fmt::fmt)
  target_precompile_headers(${owner} PRIVATE ${sibyl_precompiled_headers})
  if(tests)
    target_link_libraries(${owner} PRIVATE GTest::gmock)
    target_precompile_headers(${owner} PRIVATE <gmock/gmock.h>)
  endif()
  if(torch)
    target_link_libraries(${owner} PRIVATE sibyl::torch)
    target_precompile_headers(${owner} PRIVATE <torch/types.h>)
  endif()
endfunction()

function(sibyl_precompile target kind)
  if(NOT SIBYL_PRECOMPILE)
    return()
  endif()
  get_target_property(libraries ${target} LINK_LIBRARIES)
  # GoogleTest takes a second or two, libtorch twenty: its tests parse the former rather than all a second time.
  set(owner sibyl_precompiled)
  set(tests OFF)
  set(torch OFF)
  if(libraries MATCHES "sibyl::(torch|aten|trainer|profiler_torch)")
    set(owner sibyl_precompiled_torch)
    set(torch ON)
  elseif(kind STREQUAL "test")
    set(owner sibyl_precompiled_test)
    set(tests ON)
  endif()
  if(NOT TARGET ${owner})
    sibyl_precompiled(${owner} ${tests} ${torch})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC 12 takes std::string's inlined copies for overruns, and from a precompiled header it says so (its bug 105329).
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow)
  endif()
  # fmt's headers must be read as they were when they were precompiled.
  target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
endfunction()
