# cmake -DBUILD= -DCOMPILER= -DCONSUMER= -DHEADERS= -DWORK= -P check.cmake
# Installs BUILD to a prefix under WORK, and builds and runs CONSUMER against it.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix" --component development)

file(GLOB_RECURSE expected RELATIVE "${HEADERS}" "${HEADERS}/*")
file(GLOB_RECURSE installed RELATIVE "${WORK}/prefix/include" "${WORK}/prefix/include/*")
if(NOT "${installed}" STREQUAL "${expected}")
  message(FATAL_ERROR "Installed headers are\n${installed}\nand should be\n${expected}")
endif()

# Weak symbols of templates of other libraries lie in namespaces of our own: the linker keeps one of each name, and a
# program may have other versions of these libraries.
find_program(NM NAMES nm REQUIRED)
file(GLOB_RECURSE library "${WORK}/prefix/*/libpenstock.a")
execute_process(COMMAND "${NM}" --defined-only "${library}" OUTPUT_VARIABLE symbols ERROR_QUIET RESULT_VARIABLE result)
if(result)
  message(FATAL_ERROR "nm does not read ${library}")
endif()
string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*[^0-9](3fmt|8nlohmann|5Eigen|3CLI)[^\n]*" strangers "${symbols}")
if(strangers)
  list(LENGTH strangers count)
  list(SUBLIST strangers 0 5 some)
  message(FATAL_ERROR "${count} weak symbols are those of other libraries: ${some}")
endif()
if(NOT symbols MATCHES "12penstock_fmt")
  message(FATAL_ERROR "nm shows none of the symbols that this looks for")
endif()

# The prefix moves: nothing in the package may hold the place it was installed to, nor the build folder.
file(RENAME "${WORK}/prefix" "${WORK}/moved")
run("${CMAKE_COMMAND}" -S "${CONSUMER}" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/moved"
    "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_BUILD_TYPE=Release)
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer" "${WORK}/roundtrip.npz")

# The same program without CMake.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc "${WORK}/moved/*/penstock.pc")
  cmake_path(GET pc PARENT_PATH pc_folder)
  set(ENV{PKG_CONFIG_PATH} "${pc_folder}")
  execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs penstock OUTPUT_VARIABLE flags RESULT_VARIABLE result)
  if(result)
    message(FATAL_ERROR "pkg-config does not read ${pc}")
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  run("${COMPILER}" -std=c++20 -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror "${CONSUMER}/main.cpp" -o
      "${WORK}/consumer" ${flags})
  run("${WORK}/consumer" "${WORK}/roundtrip.npz")
  # Containers of another layout than the library's: the linker says so.
  execute_process(COMMAND "${COMPILER}" -std=c++20 -D_GLIBCXX_DEBUG "${CONSUMER}/main.cpp" -o "${WORK}/debug" ${flags}
                  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result OR NOT output MATCHES "need_the_same_GLIBCXX_DEBUG")
    message(FATAL_ERROR "A program with _GLIBCXX_DEBUG is linked with a library without it, or not told why:\n${output}")
  endif()
  # Strings of another layout: the same.
  execute_process(COMMAND "${COMPILER}" -std=c++20 -D_GLIBCXX_USE_CXX11_ABI=0 "${CONSUMER}/main.cpp" -o
                          "${WORK}/old_strings" ${flags} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT result OR NOT output MATCHES "need_the_same_GLIBCXX_USE_CXX11_ABI")
    message(FATAL_ERROR "A program with strings of another layout is linked, or not told why:\n${output}")
  endif()
else()
  message(STATUS "penstock.pc is not tried, because pkg-config is not installed")
endif()
