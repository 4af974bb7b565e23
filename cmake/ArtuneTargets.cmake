# SPDX-FileCopyrightText: the ar-tune authors
# SPDX-License-Identifier: Apache-2.0

# Warnings for our own C++; CUDA translation units get the host subset through -Xcompiler.
function(artune_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion $<$<BOOL:${ARTUNE_WERROR}>:-Werror>>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
endfunction()

# artune_add_library(name SOURCES a.cpp … LINK base …): a static library whose headers are included as
# "folder/file.hpp" from src/ and kernels/. Namespaced alias artune::name for use inside this project.
function(artune_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(artune_${name} STATIC ${ARG_SOURCES})
  target_include_directories(artune_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/kernels ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(artune_${name} PUBLIC ${ARG_LINK})
  set_target_properties(artune_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  artune_warnings(artune_${name})
endfunction()

# artune_add_test(name SOURCES … LINK … [LABELS …] [PROPERTIES …]): a GoogleTest binary, one CTest test.
function(artune_add_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;LABELS;PROPERTIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE ARTUNE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  artune_warnings(${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_RETURN_CODE 77 TIMEOUT 300 ${ARG_PROPERTIES})
endfunction()
