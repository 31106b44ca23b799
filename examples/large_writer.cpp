// An array that is written piece by piece and may be larger than memory, appended to by a second run, and read row by
// row. The file appears whole; a run that is killed while it appends leaves the rows that were there.
//
//   large_writer FILE.npy [MEGABYTES]

#include <penstock/penstock.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

namespace ps = penstock;

// The most memory that this process had, in MB.
long peak() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

// Pieces of 1 MiB.
void write(const std::string& path, int first, int count, bool resume) {
  ps::Writer writer(path, {.resume = resume, .sync = false});
  for (int number = first; number < first + count; ++number) {
    writer.append(ps::full({256, 1024}, number, ps::DType::float32));
  }
  writer.finish();
}

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fputs("usage: large_writer FILE.npy [MEGABYTES]\n", stderr);
    return 2;
  }
  const std::string path = argv[1];
  const int pieces = argc > 2 ? std::stoi(argv[2]) : 64;
  const long before = peak();
  write(path, 0, pieces, false);
  write(path, pieces, pieces / 2, true);
  const long grown = peak() - before;
  std::printf("wrote %d MB with %s than 16 MB of memory\n", pieces + pieces / 2, grown <= 16 ? "less" : "MORE");

  const ps::Dataset rows = ps::rows(path, {}, false);  // each row is read when it is wanted
  const float first = rows[rows.size() - 1].as_tensor().select(0, 0).item<float>();
  std::printf("%lld rows; the last begins with %.0f\n", static_cast<long long>(rows.size()),
              static_cast<double>(first));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "large_writer: %s\n", error.what());
  return 1;
}
