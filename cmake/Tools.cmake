# What only makes building faster: ccache in front of the compiler and a parallel linker, where they are found.

find_program(SIBYL_CCACHE ccache)
mark_as_advanced(SIBYL_CCACHE)
if(SIBYL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the source folder do not count, so that a second clone finds what the first one compiled; precompiled headers
  # count by content.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${SIBYL_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  endif()
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} SIBYL_LINKER_${linker})
  if(SIBYL_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
