#pragma once

// What we use of libcurl, as its header (curl/curl.h) declares it: numbers of options and results are part of its ABI
// and never change. A header of ours keeps the build free of it.

#include <cstddef>
#include <cstdint>

namespace penstock::io::remote::curl {

using Easy = void;   ///< CURL: one request
using Multi = void;  ///< CURLM: many requests on one thread
using Code = int;    ///< CURLcode
using Write = std::size_t (*)(char*, std::size_t, std::size_t, void*);
using Progress = int (*)(void*, std::int64_t, std::int64_t, std::int64_t, std::int64_t);

struct List;  ///< curl_slist

/// CURLMsg
struct Message {
  int kind;
  Easy* easy;
  union {
    void* whatever;
    Code result;
  } data;
};

inline constexpr int kMessageDone = 1;
inline constexpr long kGlobalDefault = 3;
inline constexpr std::size_t kErrorBytes = 256;

/// CURLOPT_...
enum Option : int {
  kBufferSize = 98,
  kCaPath = 10097,
  kCaInfo = 10065,
  kConnectTimeoutMs = 156,
  kCustomRequest = 10036,
  kErrorBuffer = 10010,
  kFollowLocation = 52,
  kHeaderData = 10029,
  kHeaderFunction = 20079,
  kHttpHeader = 10023,
  kHttpVersion = 84,
  kNetrc = 51,
  kNoBody = 44,
  kNoProgress = 43,
  kNoProxy = 10177,
  kNoSignal = 99,
  kPathAsIs = 234,
  kPostFields = 10015,
  kPostFieldSize = 30120,
  kProgressData = 10057,
  kProgressFunction = 20219,
  kProtocols = 181,
  kSuppressConnectHeaders = 265,
  kTcpKeepAlive = 213,
  kUrl = 10002,
  kUserAgent = 10018,
  kWriteData = 10001,
  kWriteFunction = 20011,
};
/// CURLPROTO_HTTP | CURLPROTO_HTTPS
inline constexpr long kHttpOrHttps = 3;

/// CURL_HTTP_VERSION_1_1
inline constexpr long kHttp11 = 2;

/// CURLMOPT_...
inline constexpr int kMaxConnects = 6;

/// CURLINFO_...; kReadySeconds is CURLINFO_PRETRANSFER_TIME, 0 where there was no connection.
enum Info : int {
  kConnectStatus = 0x200000 + 22,
  kTotalSeconds = 0x300000 + 3,
  kReadySeconds = 0x300000 + 6,
  kStartTransferSeconds = 0x300000 + 17,
  kRetryAfterSeconds = 0x600000 + 57
};

/// CURLE_...
enum Result : Code {
  kOk = 0,
  kBadUrl = 3,
  kNoProxyHost = 5,
  kNoHost = 6,
  kNoConnection = 7,
  kHttp2 = 16,
  kPartialFile = 18,
  kWriteError = 23,
  kNoMemory = 27,
  kTimedOut = 28,
  kTlsConnect = 35,
  kGotNothing = 52,
  kSendError = 55,
  kReceiveError = 56,
  kCertificateProblem = 58,
  kCipher = 59,
  kNotTrusted = 60,
  kBadCaFile = 77,
  kHttp2Stream = 92,
  kProxy = 97,
};

/// The functions, found by Api::get.
struct Api {
  Code (*global_init)(long);
  Easy* (*easy_init)();
  void (*easy_reset)(Easy*);
  void (*easy_cleanup)(Easy*);
  Code (*easy_setopt)(Easy*, int, ...);
  Code (*easy_getinfo)(Easy*, int, ...);
  const char* (*easy_strerror)(Code);
  Multi* (*multi_init)();
  int (*multi_setopt)(Multi*, int, ...);
  int (*multi_add)(Multi*, Easy*);
  int (*multi_remove)(Multi*, Easy*);
  int (*multi_perform)(Multi*, int*);
  int (*multi_poll)(Multi*, void*, unsigned, int, int*);
  int (*multi_wakeup)(Multi*);
  Message* (*multi_info_read)(Multi*, int*);
  List* (*list_append)(List*, const char*);
  void (*list_free)(List*);

  /// Opens the library when first called. kUnsupported names the Debian package of one that is missing. Thread-safe.
  static const Api& get();
};

}  // namespace penstock::io::remote::curl
