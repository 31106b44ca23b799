# cmake -DCOMPILER= -DPROJECT= -DEMBEDDER= -DWORK= -P check_embedded.cmake
# Builds EMBEDDER, which holds PROJECT and says nothing of a build type, without CLI11, runs it, and installs it, which
# must install nothing of ours.

file(REMOVE_RECURSE "${WORK}")
include("${PROJECT}/cmake/PenstockCache.cmake")
penstock_compiler_cache(launcher "${PROJECT}" "${COMPILER}")
if(launcher)
  # With the warnings of our own build the flags are the same, so that the cache has the objects already.
  set(warnings -DPENSTOCK_WARNINGS=ON)
endif()
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${EMBEDDER}" -B "${WORK}/build" -G Ninja "-DPENSTOCK=${PROJECT}"
                        "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
                        "-DCMAKE_CXX_COMPILER_LAUNCHER=${launcher}" ${warnings}
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "Penstock cannot be configured inside of another project:\n${output}")
endif()
if(NOT output MATCHES "Penstock is a static library whatever BUILD_SHARED_LIBS says")
  message(FATAL_ERROR "Nothing was said of BUILD_SHARED_LIBS:\n${output}")
endif()

execute_process(COMMAND "${CMAKE_COMMAND}" --build "${WORK}/build" RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "Penstock cannot be built inside of another project:\n${output}")
endif()
file(STRINGS "${WORK}/build/build.ninja" flags REGEX "^  FLAGS = .*-O3")
if(NOT flags)
  message(FATAL_ERROR "Penstock is not optimised where the project that holds it sets no build type")
endif()
execute_process(COMMAND "${WORK}/build/program" "${WORK}/four.npy" RESULT_VARIABLE result OUTPUT_VARIABLE output)
if(result OR NOT output STREQUAL "1 tensor\n")
  message(FATAL_ERROR "The embedder's program ended with ${result}: ${output}")
endif()

execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${WORK}/prefix" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(GLOB_RECURSE installed "${WORK}/prefix/*")
if(result OR installed)
  message(FATAL_ERROR "The embedder has nothing to install, but there are rules:\n${output}\n${installed}")
endif()
