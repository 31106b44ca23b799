# cmake -DCOMPILER= -DPROJECT= -DEMBEDDER= -DWORK= -P check_embedded.cmake
# Configures EMBEDDER, which holds PROJECT, without CLI11, and installs it, which must install nothing of ours.

file(REMOVE_RECURSE "${WORK}")
execute_process(COMMAND "${CMAKE_COMMAND}" -S "${EMBEDDER}" -B "${WORK}/build" -G Ninja "-DPENSTOCK=${PROJECT}"
                        "-DCMAKE_CXX_COMPILER=${COMPILER}" -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
                RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result)
  message(FATAL_ERROR "Penstock cannot be configured inside of another project:\n${output}")
endif()
if(NOT output MATCHES "Penstock is a static library whatever BUILD_SHARED_LIBS says")
  message(FATAL_ERROR "Nothing was said of BUILD_SHARED_LIBS:\n${output}")
endif()

execute_process(COMMAND "${CMAKE_COMMAND}" --install "${WORK}/build" --prefix "${WORK}/prefix" RESULT_VARIABLE result
                OUTPUT_VARIABLE output ERROR_VARIABLE output)
file(GLOB_RECURSE installed "${WORK}/prefix/*")
if(result OR installed)
  message(FATAL_ERROR "The embedder has nothing to install, but there are rules:\n${output}\n${installed}")
endif()
