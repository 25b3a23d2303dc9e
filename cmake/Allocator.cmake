# sibyl_allocator(TARGET): jemalloc in the place of the C library's malloc, where it is found. A search allocates millions of small blocks
# by all threads at once: one of GPT-3 takes 6.5 s so, and 8.5 s without. For programs that predict alone: where kernels are timed,
# allocation is part of what is measured, as PyTorch has it. Sanitizers have an allocator of their own.

option(SIBYL_ALLOCATOR "Link programs that search with jemalloc, where it is found" ON)
set(SIBYL_HAVE_JEMALLOC OFF)
if(SIBYL_ALLOCATOR AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(JEMALLOC QUIET IMPORTED_TARGET jemalloc)
  endif()
  if(TARGET PkgConfig::JEMALLOC)
    set(SIBYL_HAVE_JEMALLOC ON)
  endif()
endif()
message(STATUS "Sibyl: jemalloc ${SIBYL_HAVE_JEMALLOC} (with it searches take less time: tools/setup.sh installs it)")

function(sibyl_allocator target)
  if(SIBYL_HAVE_JEMALLOC)
    target_link_libraries(${target} PRIVATE PkgConfig::JEMALLOC)
  endif()
endfunction()
