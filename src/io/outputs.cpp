// What a path to write to names: the one place that tells a file from an object in a store.

#include <filesystem>
#include <system_error>

#include "io/file/atomic_file.h"
#include "io/file/file_url.h"
#include "io/file/front_file.h"
#include "io/file/front_output.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "io/remote/object.h"
#include "io/remote/upload.h"
#include "penstock/error.h"

namespace penstock::io {

void require_output(std::string_view path) {
  if (!is_url(path) || path.starts_with("s3://") || path.starts_with("gs://")) return;
  throw Error(ErrorCode::kUnsupported,
              "http(s) and hf URLs can be read and not written; write to s3:// or gs://, or to a file of this machine",
              {.path = std::string(path)});
}

std::unique_ptr<Output> open_output(std::string_view path, const OutputOptions& options) {
  require_output(path);
  if (is_url(path)) return std::make_unique<remote::Upload>(remote::parse_object(path), options);
  return std::make_unique<AtomicFile>(local_path(path), options.sync);
}

std::unique_ptr<FrontOutput> open_front_output(std::string_view path, const OutputOptions& options) {
  require_output(path);
  if (is_url(path)) return std::make_unique<remote::Upload>(remote::parse_object(path), options, true);
  return std::make_unique<FrontFile>(local_path(path), options.sync);
}

std::string scratch_path(std::string_view path) {
  if (!is_url(path)) return local_path(path);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (!error) return (folder / "penstock").string();
  throw Error(ErrorCode::kIo, "there is no folder for temporary files; name one in TMPDIR",
              {.path = std::string(path)});
}

bool output_exists(std::string_view path) {
  require_output(path);
  if (is_url(path)) return remote::object_exists(remote::parse_object(path));
  std::error_code ignored;
  return std::filesystem::exists(local_path(path), ignored);
}

bool is_same_place(std::string_view a, std::string_view b) {
  if (is_url(a) != is_url(b)) return false;
  if (is_url(a)) return remote::is_same_object(remote::parse(a), remote::parse(b));
  std::error_code ignored;
  return std::filesystem::equivalent(local_path(a), local_path(b), ignored);
}

void remove_output(std::string_view path) noexcept {
  try {
    if (is_url(path)) return remote::remove_object(remote::parse_object(path));
    std::error_code ignored;
    std::filesystem::remove(local_path(path), ignored);
  } catch (const std::exception&) {
    // It stays; whoever takes back has an error to tell already.
  }
}

}  // namespace penstock::io
