# Which nvcc compiles CUDA, and for what: the one on PATH, in CUDA_HOME or in /usr/local/cuda. Before any package is looked for: that of a
# PyTorch with CUDA turns the language on itself, by PATH alone, stops everything where that finds no compiler, and chooses architectures
# of its own. Sets CMAKE_CUDA_COMPILER and SIBYL_CUDA_ARCHITECTURES.

if(NOT CMAKE_CUDA_COMPILER)
  find_program(SIBYL_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(SIBYL_NVCC)
  if(SIBYL_NVCC)
    set(CMAKE_CUDA_COMPILER ${SIBYL_NVCC})
  endif()
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # PTX, which the driver compiles for the device it finds: quick to build, and for any since Turing. On the machine to be
  # measured, configure with native.
  set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-virtual)
endif()
set(SIBYL_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES})
