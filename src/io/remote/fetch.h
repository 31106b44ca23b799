#pragma once

// Requests that have to succeed: what reactor.h sends once is tried again here, and followed where it is redirected.
// judge.h decides after each answer; everything above (sources, lists, uploads) calls this.

#include <span>

#include "io/remote/exchange.h"

namespace penstock::io::remote {

/// What is asked and answered is noted as traffic of the calling thread (traffic.h).
///
/// Makes all requests at once. Each is tried again, after random pauses, while that may help and time is left
/// (Settings::retry_time). When one fails, the others are dropped and its error is thrown. kCancelled within 50 ms of a
/// stop (core::StopScope).
void run(std::span<Exchange> exchanges);
/// The same, but when one fails the others go on; `error` of each says why it failed.
void run_all(std::span<Exchange> exchanges);

}  // namespace penstock::io::remote
