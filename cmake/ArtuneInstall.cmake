# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` leaves: the tool and its rigs (installed beside their targets), documents' schemas, and with
# CUDA the library as a package: find_package(artune) gives artune::artune.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/profiles/schema/ DESTINATION ${CMAKE_INSTALL_DATADIR}/ar-tune/schema FILES_MATCHING PATTERN "*.json")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

if(ARTUNE_HAVE_CUDA)
  include(CMakePackageConfigHelpers)
  set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/artune)
  install(TARGETS artune EXPORT artune_targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/include/artune DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT artune_targets NAMESPACE artune:: DESTINATION ${package_folder})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/artune-config.cmake.in ${PROJECT_BINARY_DIR}/artune-config.cmake
    INSTALL_DESTINATION ${package_folder})
  # Before 1.0 a minor version may change the ABI.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/artune-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/artune-config.cmake ${PROJECT_BINARY_DIR}/artune-config-version.cmake DESTINATION ${package_folder})
endif()
