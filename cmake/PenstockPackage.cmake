# `cpack -G DEB` in a build folder makes two Debian packages: `penstock` (the command) and `libpenstock-dev` (the static
# library and its headers). They are for the release they are built on: the command's dependencies are read from it.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME penstock)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL development)
if(PENSTOCK_CLI)
  list(APPEND CPACK_COMPONENTS_ALL command)
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# Who builds a package answers for it; a distributor sets this with -D.
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "Penstock <penstock@localhost>" CACHE STRING "Maintainer field of the .deb files")
set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME penstock)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "The command penstock: lists, checks, converts and compares .npy, .npz, .pt and .safetensors files.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpenstock-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "zlib1g-dev, libdeflate-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The C++ library Penstock, with its headers and package configuration.")

foreach(package IN ITEMS command development)
  string(TOUPPER "${package}" upper)
  set(folder "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME}")
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" RENAME copyright COMPONENT ${package} DESTINATION "${folder}")
  install(FILES "${PROJECT_SOURCE_DIR}/THIRD_PARTY_LICENSES" COMPONENT ${package} DESTINATION "${folder}")
endforeach()

include(CPack)
