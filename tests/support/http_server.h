#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace penstock::test {

struct HttpRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body = {};

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

/// An answer, with what else its head has ("Name: value\r\n").
inline std::string http_answer(int status, const std::string& body, const std::string& head = {}) {
  return "HTTP/1.1 " + std::to_string(status) +
         " X\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + head + "\r\n" + body;
}

/// The range of `content` that the request asks for, as an honest server answers it.
inline std::string http_range(const HttpRequest& request, std::string_view content,
                              const std::string& etag = "\"one\"") {
  const std::string range = request.header("range");
  const std::size_t dash = range.find('-');
  std::size_t first = 0;
  std::size_t last = 0;
  std::from_chars(range.data() + 6, range.data() + dash, first);
  std::from_chars(range.data() + dash + 1, range.data() + range.size(), last);
  if (first >= content.size())
    return http_answer(416, "", "Content-Range: bytes */" + std::to_string(content.size()) + "\r\n");
  last = std::min(last, content.size() - 1);
  return http_answer(206, std::string(content.substr(first, last - first + 1)),
                     "ETag: " + etag + "\r\nContent-Range: bytes " + std::to_string(first) + "-" +
                         std::to_string(last) + "/" + std::to_string(content.size()) + "\r\n");
}

/// A server on loopback whose answers a function makes: the bytes as they go out; nothing for a server that stops.
class HttpServer {
 public:
  using Handler = std::function<std::string(const HttpRequest&)>;

  explicit HttpServer(Handler handler) : handler_(std::move(handler)), listening_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    ::bind(listening_, reinterpret_cast<sockaddr*>(&address), length);
    ::listen(listening_, 64);
    ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ::ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~HttpServer() {
    over_ = true;
    accepting_.join();
    for (std::thread& one : serving_) one.join();
    ::close(listening_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& path = "/x") const { return "http://" + host() + path; }
  int port() const noexcept { return port_; }
  std::vector<HttpRequest> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  static constexpr int kLookMs = 5;

  bool readable(int socket) const {
    pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
    while (!over_) {
      if (::poll(&one, 1, kLookMs) > 0) return true;
    }
    return false;
  }

  void accept_all() {
    while (readable(listening_)) {
      const int socket = ::accept(listening_, nullptr, nullptr);
      if (socket >= 0) serving_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    std::string head;
    char bytes[4096];
    while (head.find("\r\n\r\n") == std::string::npos && readable(socket)) {
      const ssize_t got = ::recv(socket, bytes, sizeof(bytes), 0);
      if (got <= 0) break;
      head.append(bytes, static_cast<std::size_t>(got));
    }
    if (head.find("\r\n\r\n") == std::string::npos) {  // a client that went away asked for nothing
      ::close(socket);
      return;
    }
    const std::size_t end = head.find("\r\n\r\n") + 4;
    HttpRequest request = parse(std::string_view(head).substr(0, end));
    request.body = head.substr(end);
    std::size_t length = 0;
    const std::string told = request.header("content-length");
    std::from_chars(told.data(), told.data() + told.size(), length);
    while (request.body.size() < length && readable(socket)) {
      const ssize_t got = ::recv(socket, bytes, sizeof(bytes), 0);
      if (got <= 0) break;
      request.body.append(bytes, static_cast<std::size_t>(got));
    }
    {
      const std::scoped_lock lock(mutex_);
      requests_.push_back(request);
    }
    const std::string answer = handler_(request);
    if (answer.empty()) static_cast<void>(readable(socket));
    for (std::size_t done = 0; done < answer.size();) {
      const ssize_t sent = ::send(socket, answer.data() + done, answer.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += static_cast<std::size_t>(sent);
    }
    ::close(socket);
  }

  static HttpRequest parse(std::string_view head) {
    HttpRequest out;
    bool first = true;
    while (!head.empty()) {
      const std::string_view line = head.substr(0, head.find("\r\n"));
      head.remove_prefix(std::min(head.size(), line.size() + 2));
      if (line.empty()) break;
      if (std::exchange(first, false)) {
        out.method = line.substr(0, line.find(' '));
        const std::string_view rest = line.substr(out.method.size() + 1);
        out.target = rest.substr(0, rest.find(' '));
        continue;
      }
      std::string name(line.substr(0, line.find(':')));
      std::ranges::transform(name, name.begin(),
                             [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
      out.headers[name] = line.substr(std::min(line.size(), name.size() + 2));
    }
    return out;
  }

  Handler handler_;
  int listening_;
  int port_ = 0;
  std::atomic<bool> over_{false};
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace penstock::test
