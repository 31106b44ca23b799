// The three shapes of a data set as batches: rows of arrays, loose files, and clips of different length padded to the
// longest.
//
//   batches images.npy labels.npy 'digits/*.pt' 'clips/*.pt'

#include <penstock/penstock.h>

#include <cstdio>
#include <exception>
#include <string>

namespace ps = penstock;

void show(const char* what, ps::DataLoader& loader) {
  for (const ps::Batch& batch : loader) {
    std::printf("%-12s %lld batches, the first: %s\n", what, static_cast<long long>(loader.size()),
                batch.value.to_string().c_str());
    return;  // breaking off is fine: the loader stops its threads when it goes
  }
}

int main(int argc, char** argv) try {
  if (argc != 5) {
    std::fprintf(stderr, "usage: batches images.npy labels.npy 'digits/*.pt' 'clips/*.pt'\n");
    return 2;
  }
  const ps::LoaderOptions options{.batch_size = 32, .shuffle = true, .num_workers = 2};

  ps::DataLoader rows(ps::zip(ps::rows(argv[1]), ps::rows(argv[2])), options);
  show("rows", rows);

  ps::DataLoader files(ps::files(argv[3]), options);
  show("files", files);

  ps::LoaderOptions padded = options;
  padded.collate = ps::collate::pad({.lengths = true});
  ps::DataLoader clips(ps::files(argv[4]), padded);
  show("padded", clips);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "batches: %s\n", error.what());
  return 1;
}
