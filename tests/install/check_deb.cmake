# cmake -DBUILD= -DCPACK= -DDPKG_DEB= -DVERSION= -DWORK= -P check_deb.cmake
# Makes the Debian packages of BUILD, and looks at what is in them and what they depend on.

function(output_of into)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(result)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}\n${errors}")
  endif()
  set(${into} "${output}" PARENT_SCOPE)
endfunction()

function(require text pattern what)
  if(NOT text MATCHES "${pattern}")
    message(FATAL_ERROR "${what}: nothing matches ${pattern} in\n${text}")
  endif()
endfunction()

# check(PACKAGE DEPENDS FILE...): of PACKAGE's fields and its files, as patterns.
function(check package depends)
  file(GLOB found "${WORK}/${package}_*.deb")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "cpack made ${count} files of ${package}: ${found}")
  endif()
  output_of(fields "${DPKG_DEB}" --field "${found}")
  require("${fields}" "Package: ${package}\n" "${package}")
  require("${fields}" "Version: ${VERSION}\n" "${package}")
  require("${fields}" "Depends: [^\n]*${depends}" "${package}")
  require("${fields}" "Maintainer: [^\n]+ <[^\n]+>\n" "${package}")
  output_of(content "${DPKG_DEB}" --contents "${found}")
  foreach(file IN LISTS ARGN ITEMS "share/doc/${package}/copyright")
    require("${content}" " \\./usr/${file}\n" "${package}")
  endforeach()
  # Nothing lies elsewhere, and nothing of tests or of the Python module.
  string(REGEX MATCHALL " \\./[^u\n][^\n]*| [^\n]*(gtest|_core|python|test_)[^\n]*" strangers "${content}")
  if(strangers)
    message(FATAL_ERROR "${package} has also ${strangers}")
  endif()
  set(content "${content}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
output_of(ignored "${CPACK}" -G DEB --config "${BUILD}/CPackConfig.cmake" -B "${WORK}")

check(penstock "libc6 " "bin/penstock" "share/man/man1/penstock\\.1"
      "share/bash-completion/completions/penstock" "share/zsh/site-functions/_penstock"
      "share/fish/vendor_completions\\.d/penstock\\.fish")
check(libpenstock-dev "zlib1g-dev, libdeflate-dev" "include/penstock/penstock\\.h" "lib[^\n]*/libpenstock\\.a"
      "lib[^\n]*/cmake/Penstock/PenstockConfig\\.cmake" "lib[^\n]*/pkgconfig/penstock\\.pc")
if(content MATCHES "/bin/")
  message(FATAL_ERROR "libpenstock-dev has a program:\n${content}")
endif()

# What is in it runs where it is unpacked.
file(GLOB package "${WORK}/penstock_*.deb")
output_of(ignored "${DPKG_DEB}" --extract "${package}" "${WORK}/root")
output_of(version "${WORK}/root/usr/bin/penstock" --version)
require("${version}" "${VERSION}" "penstock --version")
