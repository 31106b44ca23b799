#include <penstock/penstock.h>

#include <cstdio>

extern "C" std::size_t count_of(const char* path);

int main(int, char** argv) {
  penstock::save(penstock::Tensor::of<float>({1, 2, 3, 4}), argv[1]);
  std::printf("%zu tensor\n", count_of(argv[1]));
}
