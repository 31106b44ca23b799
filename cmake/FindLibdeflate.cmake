# Libdeflate::Libdeflate (Debian's package has no CMake configuration). The static library where it can become part of a
# shared one, so that what is built runs on machines without libdeflate; Ubuntu 24.04's cannot, it is not built with
# -fPIC.

find_path(Libdeflate_INCLUDE_DIR libdeflate.h)
find_library(Libdeflate_STATIC_LIBRARY NAMES libdeflate.a)
find_library(Libdeflate_SHARED_LIBRARY NAMES deflate)

if(Libdeflate_STATIC_LIBRARY AND NOT DEFINED Libdeflate_STATIC_IS_PIC)
  set(_probe "${CMAKE_BINARY_DIR}/CMakeFiles/FindLibdeflate")
  file(WRITE "${_probe}/CMakeLists.txt" "cmake_minimum_required(VERSION 3.22)
project(probe CXX)
add_library(probe SHARED probe.cpp)
target_include_directories(probe PRIVATE \"${Libdeflate_INCLUDE_DIR}\")
target_link_libraries(probe PRIVATE \"${Libdeflate_STATIC_LIBRARY}\")
")
  file(WRITE "${_probe}/probe.cpp" "#include <libdeflate.h>
extern \"C\" libdeflate_decompressor* probe() { return libdeflate_alloc_decompressor(); }
")
  message(CHECK_START "Checking whether ${Libdeflate_STATIC_LIBRARY} can go into a shared library")
  try_compile(Libdeflate_STATIC_IS_PIC "${_probe}/build" "${_probe}" probe)
  if(Libdeflate_STATIC_IS_PIC)
    message(CHECK_PASS "yes")
  else()
    message(CHECK_FAIL "no")
  endif()
endif()
if(Libdeflate_STATIC_IS_PIC)
  set(_library Libdeflate_STATIC_LIBRARY)
else()
  set(_library Libdeflate_SHARED_LIBRARY)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libdeflate REQUIRED_VARS ${_library} Libdeflate_INCLUDE_DIR)
mark_as_advanced(Libdeflate_INCLUDE_DIR Libdeflate_STATIC_LIBRARY Libdeflate_SHARED_LIBRARY)

if(Libdeflate_FOUND AND NOT TARGET Libdeflate::Libdeflate)
  add_library(Libdeflate::Libdeflate UNKNOWN IMPORTED)
  set_target_properties(Libdeflate::Libdeflate PROPERTIES IMPORTED_LOCATION "${${_library}}"
                                                          INTERFACE_INCLUDE_DIRECTORIES "${Libdeflate_INCLUDE_DIR}")
endif()
