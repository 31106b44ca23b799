// What a path to write to names: the one place that tells a file from an object in a store.

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>

#include "core/format.h"
#include "core/system_error.h"
#include "core/text.h"
#include "core/url_scheme.h"
#include "io/file/atomic_file.h"
#include "io/file/file_url.h"
#include "io/file/front_file.h"
#include "io/file/front_output.h"
#include "io/file/open_path.h"
#include "io/file/output.h"
#include "io/file/url.h"
#include "io/remote/object.h"
#include "io/remote/upload.h"
#include "penstock/error.h"

namespace penstock::io {
namespace {

namespace fs = std::filesystem;

FileDescriptor open_file_to_append(std::string_view path) {
  const std::string name = local_path(path);
  // Not blocking: a FIFO would wait for a reader.
  FileDescriptor file = open_path(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (!file && errno != ENOENT) core::throw_errno(errno, "cannot open the file to append to it", {.path = name});
  return file;
}

/// A store changes no object: rows can begin one and not go on behind those of another.
FileDescriptor require_no_object(std::string_view url) {
  if (!output_exists(url)) return {};
  throw Error(ErrorCode::kUnsupported,
              "there is such an object, and objects in stores cannot be appended to: write the rows into another one, "
              "or into a file here that is uploaded when it is complete (`penstock convert`)",
              {.path = std::string(url)});
}

std::string temporary_path(std::string_view url) {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  // A name of its own: what others have there may be no file, or none that can be replaced.
  if (!error) return (folder / core::format("penstock-{:08x}", std::random_device{}())).string();
  throw Error(ErrorCode::kIo, "there is no folder for temporary files; name one in TMPDIR", {.path = std::string(url)});
}

}  // namespace

void require_output(std::string_view path) {
  if (is_in_store(path)) return;
  if (!is_url(path)) {
    // A folder "gcs:" of this machine is not what anybody means, and nobody could open what lies in it.
    const std::string_view scheme = core::scheme_of(path);
    if (scheme.empty() || scheme == "file") return;
    throw Error(ErrorCode::kUnsupported,
                core::format("nothing can be written to locations that start with {}; give a path, or a URL of {}",
                             core::quoted(std::string(scheme) + "://"), core::store_schemes("or")),
                {.path = std::string(path)});
  }
  throw Error(ErrorCode::kUnsupported,
              core::format("http(s) and hf URLs can be read and not written; write to {}, or to a file of this machine",
                           core::store_schemes("or")),
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

FileDescriptor open_to_append(std::string_view path) {
  require_output(path);
  return is_url(path) ? require_no_object(path) : open_file_to_append(path);
}

std::string scratch_path(std::string_view path) { return is_url(path) ? temporary_path(path) : local_path(path); }

bool output_exists(std::string_view path) {
  require_output(path);
  if (is_url(path)) return remote::object_exists(remote::parse_object(path));
  std::error_code ignored;
  return fs::exists(local_path(path), ignored);
}

bool is_same_place(std::string_view a, std::string_view b) {
  if (is_url(a) != is_url(b)) return false;
  if (is_url(a)) return remote::is_same_object(remote::parse(a), remote::parse(b));
  std::error_code ignored;
  return fs::equivalent(local_path(a), local_path(b), ignored);
}

void remove_output(std::string_view path) noexcept {
  try {
    std::error_code ignored;
    if (is_url(path)) return remote::remove_object(remote::parse_object(path));
    fs::remove(local_path(path), ignored);
  } catch (const std::exception&) {
    // It stays; whoever takes back has an error to tell already.
  }
}

}  // namespace penstock::io
