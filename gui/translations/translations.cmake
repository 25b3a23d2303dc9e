# Translations. `cmake --build … --target gui_translations` writes the texts that the sources have now into the .ts files, which
# Qt Linguist edits; to add a language, add its file to the list. English has a file for its plurals alone.
set(languages en)
set(all)

find_program(SIBYL_LUPDATE lupdate HINTS ${QT6_INSTALL_PREFIX}/${QT6_INSTALL_BINS} /usr/lib/qt6/bin)
find_program(SIBYL_LRELEASE lrelease HINTS ${QT6_INSTALL_PREFIX}/${QT6_INSTALL_BINS} /usr/lib/qt6/bin)
if(NOT SIBYL_LRELEASE OR NOT SIBYL_LUPDATE)
  message(STATUS "Sibyl: lupdate and lrelease are not here, so the desktop program is built without translations")
  return()
endif()

add_custom_target(gui_translations)
foreach(language ${languages})
  set(texts ${CMAKE_CURRENT_LIST_DIR}/sibyl_${language}.ts)
  set(compiled ${CMAKE_CURRENT_BINARY_DIR}/sibyl_${language}.qm)
  set(plurals)
  if(language STREQUAL en)
    set(plurals -pluralonly)
  endif()
  add_custom_command(TARGET gui_translations
                     COMMAND ${SIBYL_LUPDATE} ${plurals} -no-obsolete -locations none -I ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/gui -ts ${texts} VERBATIM)
  add_custom_command(OUTPUT ${compiled} COMMAND ${SIBYL_LRELEASE} -silent ${texts} -qm ${compiled} DEPENDS ${texts} VERBATIM)
  set_source_files_properties(${compiled} PROPERTIES QT_RESOURCE_ALIAS sibyl_${language}.qm)
  list(APPEND all ${compiled})
endforeach()
qt_add_resources(sibyl-gui sibyl_gui_translations PREFIX "/translations" FILES ${all})
