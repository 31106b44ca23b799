// The headers that all tests parse are compiled beside this file, once (tests/CMakeLists.txt).
