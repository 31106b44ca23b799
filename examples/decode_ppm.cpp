// Images in a format that Penstock does not know, decoded by a function of the program's own in the loader's threads:
// PPM files as the sample, random crops that repeat, batches of float32. Damaged images are left out and listed.
//
//   decode_ppm FOLDER          (writes a few images there first where there are none)

#include <penstock/penstock.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ps = penstock;

constexpr std::int64_t kCrop = 24;
constexpr std::int64_t kMostSide = 1 << 16;

// The next number of a PPM header, behind white space.
std::int64_t number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{}) throw std::runtime_error("the header of the PPM is damaged");
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

// What the bytes of a binary PPM show: uint8 of shape (height, width, 3). What it throws names no file: the loader's
// error does.
ps::Tensor decode(const ps::Tensor& file) {
  const auto bytes = file.values<const std::uint8_t>();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("P6")) throw std::runtime_error("this is no binary PPM");
  text.remove_prefix(2);
  const std::int64_t width = number(text);
  const std::int64_t height = number(text);
  if (number(text) != 255) throw std::runtime_error("the PPM has no 8 bits a colour");
  if (width < 1 || height < 1 || width > kMostSide || height > kMostSide)
    throw std::runtime_error("sides out of range");
  const auto wanted = static_cast<std::size_t>(width * height * 3);
  if (text.size() < wanted + 1) throw std::runtime_error("the PPM ends before its last row");
  ps::Tensor image = ps::Tensor::empty({height, width, 3}, ps::DType::uint8);
  std::memcpy(image.data(), text.data() + 1, wanted);
  return image;
}

// A part of the image as float32 from 0 to 1. The generator is made from seed, epoch and sample: the same crops for any
// number of workers, other ones in each epoch.
ps::Tensor random_crop(const ps::Tensor& image, ps::Generator& random) {
  const std::int64_t top = ps::randint(0, image.shape()[0] - kCrop + 1, {}, random).item<std::int64_t>();
  const std::int64_t left = ps::randint(0, image.shape()[1] - kCrop + 1, {}, random).item<std::int64_t>();
  const ps::Tensor part = image.slice(0, top, top + kCrop).slice(1, left, left + kCrop);
  return part.to(ps::DType::float32) / 255;
}

void write_images(const std::filesystem::path& folder) {
  for (int i = 0; i < 40; ++i) {
    const int width = 32 + i % 5;
    const int height = 28 + i % 3;
    std::ofstream out(folder / (std::to_string(100 + i) + ".ppm"), std::ios::binary);
    out << "P6\n" << width << " " << height << "\n255\n";
    const int rows = i == 17 ? height / 2 : height;  // one that was cut
    for (int at = 0; at < rows * width * 3; ++at) out.put(static_cast<char>((at * 7 + i * 31) % 256));
  }
}

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: decode_ppm FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  if (std::filesystem::is_empty(folder)) write_images(folder);

  const ps::Dataset crops = ps::files((folder / "*.ppm").string(), {.raw = true}).map(decode).map(random_crop);
  ps::DataLoader loader(crops, {.batch_size = 16, .shuffle = true, .num_workers = 2, .on_error = ps::OnError::kSkip});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::int64_t images = 0;
    double brightness = 0;
    for (const ps::Batch& batch : loader) {
      images += batch.size();
      brightness += ps::mean(batch.tensor()).item<double>() * static_cast<double>(batch.size());
    }
    std::printf("epoch %d: %lld images, mean %.4f\n", epoch, static_cast<long long>(images),
                brightness / static_cast<double>(images));
  }
  for (const ps::SetAside& bad : loader.set_aside()) std::printf("left out: %s\n", bad.why.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "decode_ppm: %s\n", error.what());
  return 1;
}
