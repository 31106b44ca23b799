#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/http_server.h"

namespace penstock::test {

/// Serves the files of a folder by http on loopback, each by its name.
class ServedFolder {
 public:
  explicit ServedFolder(std::filesystem::path folder)
      : folder_(std::move(folder)), server_([this](const HttpRequest& request) { return answer(request); }) {
    for (const char* const name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "PENSTOCK_CACHE"}) {
      ::unsetenv(name);
    }
  }

  /// The URL of the folder.
  std::string url() const { return server_.url("/"); }
  std::string url(const std::string& name) const { return server_.url("/" + name); }
  std::vector<HttpRequest> requests() const { return server_.requests(); }

  /// Bytes that were asked for by ranges, without the first `but` requests.
  std::uint64_t bytes_asked(std::size_t but = 0) const {
    std::uint64_t bytes = 0;
    for (const std::vector<HttpRequest> requests = server_.requests(); but < requests.size(); ++but) {
      const std::string range = requests[but].header("range");  // bytes=0-65535
      const std::size_t dash = range.find('-');
      if (dash != std::string::npos) bytes += std::stoull(range.substr(dash + 1)) - std::stoull(range.substr(6)) + 1;
    }
    return bytes;
  }

 private:
  std::string answer(const HttpRequest& request) const {
    const std::filesystem::path file = folder_ / decoded(request.target.substr(request.target.rfind('/') + 1));
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) return http_answer(404, "");
    return http_range(request, read_file(file.string()));
  }

  static std::string decoded(const std::string& name) {
    std::string out;
    for (std::size_t i = 0; i < name.size(); ++i) {
      const bool is_code = name[i] == '%' && i + 2 < name.size();
      out += is_code ? static_cast<char>(std::stoi(name.substr(i + 1, 2), nullptr, 16)) : name[i];
      if (is_code) i += 2;
    }
    return out;
  }

  std::filesystem::path folder_;
  HttpServer server_;
};

}  // namespace penstock::test
