// Uses every library that Penstock links: a deflated .npz is written, read back and made into batches.

#include <penstock/penstock.h>

#include <cstdio>

namespace ps = penstock;

int main(int, char** argv) {
  try {
    const ps::Tensor written = ps::Tensor::of<float>({1, 2, 3, 4});
    ps::save(ps::Value::dict({{"x", ps::Value::tensor(written)}}), argv[1], {.compress = true});
    const ps::Value read = ps::load(argv[1]);
    if (!ps::Tensor::identical(read["x"].as_tensor(), written)) return 1;

    std::int64_t seen = 0;
    ps::DataLoader loader(ps::rows(read["x"].as_tensor()), {.batch_size = 3});
    for (const ps::Batch& batch : loader) seen += batch.size();
    return seen == 4 ? 0 : 1;
  } catch (const ps::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
