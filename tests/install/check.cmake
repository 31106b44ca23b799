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
  run("${COMPILER}" -std=c++20 "${CONSUMER}/main.cpp" -o "${WORK}/consumer" ${flags})
  run("${WORK}/consumer" "${WORK}/roundtrip.npz")
else()
  message(STATUS "penstock.pc is not tried, because pkg-config is not installed")
endif()
