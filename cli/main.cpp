#include <algorithm>
#include <span>

#include "cli/program.h"

int main(int argc, char** argv) { return penstock::cli::run_program(std::span(argv + std::min(argc, 1), argv + argc)); }
