# What only makes building faster: ccache in front of the compiler and a parallel linker, where they are found.

find_program(SIBYL_CCACHE ccache)
mark_as_advanced(SIBYL_CCACHE)
if(SIBYL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SIBYL_CCACHE})
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} SIBYL_LINKER_${linker})
  if(SIBYL_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
