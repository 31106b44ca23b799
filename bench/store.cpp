// An object store that costs little, so that its clients are what is measured: one thread serves the files of a folder
// as objects of a bucket, each answer so many milliseconds late. It reads signatures and checks none.
//
//   bench_store FOLDER PORT MILLISECONDS       http://127.0.0.1:PORT/bucket/NAME is FOLDER/NAME
//
// GET and HEAD, with one range; connections are kept. Ends with SIGTERM.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kBucket = "/bucket/";

/// A file of the folder, mapped when it is first asked for.
struct Object {
  const char* bytes = nullptr;
  std::size_t size = 0;
};

class Objects {
 public:
  explicit Objects(std::string folder) : folder_(std::move(folder) + "/") {}

  const Object* find(std::string_view target) {
    target = target.substr(0, target.find('?'));
    if (!target.starts_with(kBucket) || target.find("..") != target.npos) return nullptr;
    const std::string name(target.substr(kBucket.size()));
    const auto known = known_.find(name);
    if (known != known_.end()) return &known->second;
    const int file = ::open((folder_ + name).c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file < 0) return nullptr;
    const bool is_file = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const bytes = is_file ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (bytes == MAP_FAILED) return nullptr;
    return &known_.emplace(name, Object{static_cast<const char*>(bytes), size}).first->second;
  }

 private:
  std::string folder_;
  std::map<std::string, Object> known_;
};

struct Answer {
  std::string head;
  std::string_view body = {};
};

struct Connection {
  std::string received = {};
  Answer answer = {};
  std::size_t sent = 0;
};

/// What is in a header of the request, without blanks around it; empty where there is none.
std::string_view header_of(std::string_view request, std::string_view name) {
  for (std::size_t at = request.find("\r\n"); at != request.npos; at = request.find("\r\n", at + 2)) {
    const std::string_view line = request.substr(at + 2, request.find("\r\n", at + 2) - at - 2);
    if (line.size() <= name.size() || line[name.size()] != ':') continue;
    if (::strncasecmp(line.data(), name.data(), name.size()) != 0) continue;
    const std::size_t begin = line.find_first_not_of(' ', name.size() + 1);
    return begin == line.npos ? std::string_view() : line.substr(begin);
  }
  return {};
}

struct Range {
  std::size_t begin;
  std::size_t end;
};

/// Of "bytes=5-9", "bytes=5-" or "bytes=-5"; nothing where it lies outside.
std::optional<Range> range_of(std::string_view text, std::size_t size) {
  text.remove_prefix(std::min(text.size(), std::string_view("bytes=").size()));
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto number = [](std::string_view digits) {
    std::size_t out = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out;
  };
  const std::string_view first = text.substr(0, dash);
  const std::string_view last = text.substr(dash + 1);
  if (first.empty()) return Range{size - std::min(size, number(last)), size};
  const Range out{number(first), last.empty() ? size : std::min(size, number(last) + 1)};
  return out.begin < out.end ? std::optional(out) : std::nullopt;
}

Answer answer_to(std::string_view request, Objects& objects) {
  const std::size_t blank = request.find(' ');
  const std::string_view method = request.substr(0, blank);
  const std::string_view rest = request.substr(blank + 1);
  const Object* const object = objects.find(rest.substr(0, rest.find(' ')));
  if (object == nullptr) return {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"};
  const std::string_view asked = header_of(request, "range");
  const auto range = asked.empty() ? Range{0, object->size} : range_of(asked, object->size);
  if (!range) return {"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n"};
  char head[512];
  const int length =
      std::snprintf(head, sizeof(head),
                    "HTTP/1.1 %s\r\nETag: \"%zx\"\r\nLast-Modified: Mon, 30 Nov 2026 00:00:00 GMT\r\n"
                    "Accept-Ranges: bytes\r\nContent-Length: %zu\r\n",
                    asked.empty() ? "200 OK" : "206 Partial Content", object->size, range->end - range->begin);
  Answer out{std::string(head, static_cast<std::size_t>(length))};
  if (!asked.empty()) {
    std::snprintf(head, sizeof(head), "Content-Range: bytes %zu-%zu/%zu\r\n", range->begin, range->end - 1,
                  object->size);
    out.head += head;
  }
  out.head += "\r\n";
  if (method != "HEAD") out.body = {object->bytes + range->begin, range->end - range->begin};
  return out;
}

class Server {
 public:
  Server(const char* folder, std::uint16_t port, std::chrono::microseconds delay)
      : objects_(folder), delay_(delay), waiting_(::epoll_create1(EPOLL_CLOEXEC)) {
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(listening_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listening_, 1024) != 0) {
      std::perror("bench_store: the port cannot be had");
      std::exit(1);
    }
    watch(listening_, EPOLL_CTL_ADD, EPOLLIN);
  }

  [[noreturn]] void run() {
    while (true) {
      epoll_event events[64];
      const int count = wait(events, 64);
      for (int i = 0; i < count; ++i) handle(events[i]);
      send_due();
    }
  }

 private:
  void watch(int socket, int how, std::uint32_t what) {
    epoll_event event{};
    event.events = what;
    event.data.fd = socket;
    ::epoll_ctl(waiting_, how, socket, &event);
  }

  int wait(epoll_event* events, int most) {
    if (due_.empty()) return ::epoll_wait(waiting_, events, most, -1);
    const auto left = std::max(Clock::duration::zero(), due_.front().at - Clock::now());
    const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000), nanoseconds % 1'000'000'000};
    return ::epoll_pwait2(waiting_, events, most, &timeout, nullptr);
  }

  void handle(const epoll_event& event) {
    if (event.data.fd == listening_) return accept_all();
    if ((event.events & EPOLLOUT) != 0) return send(event.data.fd);
    receive(event.data.fd);
  }

  void accept_all() {
    for (int socket = 0; (socket = ::accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      connections_[socket] = std::make_shared<Connection>();
      watch(socket, EPOLL_CTL_ADD, EPOLLIN);
    }
  }

  void receive(int socket) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    char bytes[8192];
    const ssize_t got = ::recv(socket, bytes, sizeof(bytes), 0);
    if (got <= 0) return close(socket);
    connection.received.append(bytes, static_cast<std::size_t>(got));
    take_request(socket, found->second);
  }

  void take_request(int socket, const std::shared_ptr<Connection>& connection) {
    const std::size_t end = connection->received.find("\r\n\r\n");
    if (end == std::string::npos || !connection->answer.head.empty()) return;
    connection->answer = answer_to(std::string_view(connection->received).substr(0, end + 2), objects_);
    connection->received.erase(0, end + 4);
    connection->sent = 0;
    due_.push_back({Clock::now() + delay_, socket, connection});
  }

  void send_due() {
    const auto now = Clock::now();
    while (!due_.empty() && due_.front().at <= now) {
      const Due next = due_.front();
      due_.pop_front();
      // The number may be another connection's by now.
      const auto found = connections_.find(next.socket);
      if (found != connections_.end() && found->second == next.connection.lock()) send(next.socket);
    }
  }

  void send(int socket) {
    const auto found = connections_.find(socket);
    if (found == connections_.end()) return;
    Connection& connection = *found->second;
    const Answer& answer = connection.answer;
    const std::size_t all = answer.head.size() + answer.body.size();
    while (connection.sent < all) {
      iovec parts[2];
      const std::size_t of_head = std::min(connection.sent, answer.head.size());
      const std::size_t of_body = connection.sent - of_head;
      parts[0] = {const_cast<char*>(answer.head.data()) + of_head, answer.head.size() - of_head};
      parts[1] = {const_cast<char*>(answer.body.data()) + of_body, answer.body.size() - of_body};
      const ssize_t sent = ::writev(socket, parts, 2);
      if (sent < 0 && errno == EAGAIN) return watch(socket, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      if (sent < 0) return close(socket);
      connection.sent += static_cast<std::size_t>(sent);
    }
    connection.answer = {};
    watch(socket, EPOLL_CTL_MOD, EPOLLIN);
    take_request(socket, found->second);
  }

  void close(int socket) {
    connections_.erase(socket);
    ::close(socket);
  }

  struct Due {
    Clock::time_point at;
    int socket;
    std::weak_ptr<Connection> connection;
  };

  Objects objects_;
  std::chrono::microseconds delay_;
  int waiting_;
  int listening_ = -1;
  std::unordered_map<int, std::shared_ptr<Connection>> connections_;
  std::deque<Due> due_;  ///< in the order of time, as all wait equally long
};

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s FOLDER PORT MILLISECONDS\n", words[0]);
    return 2;
  }
  const auto delay = std::chrono::microseconds(static_cast<std::int64_t>(std::atof(words[3]) * 1000));
  Server(words[1], static_cast<std::uint16_t>(std::atoi(words[2])), delay).run();
}
