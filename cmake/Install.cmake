# What `cmake --install` puts in place: the programs, and the libraries that a program which predicts links, with their
# headers and a package file, so that find_package(sibyl) gives sibyl::oracle, sibyl::onnx and the others.
# Libraries that need MPI or libtorch stay inside the programs that use them.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(library base models training canonical onnx zoo profiler netmodel calibration plan oracle search report)
  if(TARGET sibyl_${library})
    install(TARGETS sibyl_${library} EXPORT sibylTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
foreach(program sibyl sibyl-train sibyl-calibrate sibyl-calibrate-cudnn sibyl-gui)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

if(TARGET sibyl-gui)
  install(FILES ${PROJECT_SOURCE_DIR}/gui/app/sibyl-gui.desktop DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/applications)
  # As a built program it is under GPL-3 (docs/gui.md).
  install(FILES ${PROJECT_SOURCE_DIR}/gui/LICENSE.GPL-3 DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/gui/app/sibyl-gui.svg DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/icons/hicolor/scalable/apps)
endif()

foreach(room base models profiler netmodel calibration oracle)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${room}/*.h)
  list(FILTER headers EXCLUDE REGEX "^(profiler/torch|profiler/cudnn|netmodel/probe|calibration/program|oracle/cli)/")
  foreach(header ${headers})
    cmake_path(GET header PARENT_PATH folder)
    install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sibyl/${folder})
  endforeach()
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/sibyl)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/sibylConfig.cmake.in ${PROJECT_BINARY_DIR}/sibylConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/sibylConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/sibylConfig.cmake ${PROJECT_BINARY_DIR}/sibylConfigVersion.cmake
        DESTINATION ${package_folder})
install(EXPORT sibylTargets NAMESPACE sibyl:: DESTINATION ${package_folder})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
