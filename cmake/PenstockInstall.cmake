# `cmake --install`: the library with its headers and package configuration (component `development`) and the command
# (component `command`, in cli/). Only include/penstock is public.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Penstock")

install(TARGETS penstock EXPORT PenstockTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/penstock" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(EXPORT PenstockTargets NAMESPACE Penstock:: DESTINATION "${package_dir}" COMPONENT development)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/PenstockConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/PenstockConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
# For builds without CMake: `g++ $(pkg-config --cflags --libs penstock)`. The library is static, so that what it needs
# itself is named too. The prefix is counted from where the file lies, because an installed tree may move.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
           OUTPUT_VARIABLE pc_prefix)
configure_file("${CMAKE_CURRENT_LIST_DIR}/penstock.pc.in" "${PROJECT_BINARY_DIR}/penstock.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/penstock.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
        COMPONENT development)

install(FILES "${PROJECT_BINARY_DIR}/PenstockConfig.cmake" "${PROJECT_BINARY_DIR}/PenstockConfigVersion.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindLibdeflate.cmake"
        DESTINATION "${package_dir}" COMPONENT development)
